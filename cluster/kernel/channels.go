package kernel

import "parley/cluster/protocols"

// The channels of a node's machines. They are identical on all nodes, and no two services share one.
const (
	ClockChannel = 1
	// AdminChannel carries votes to expel and disk positions.
	AdminChannel = 2
	// FirstGroup is the channel of the first group. The channels of the other groups follow, below FirstTable.
	FirstGroup = protocols.FirstGroup
	// FirstTable is the channel of the first table. The channels of the other tables follow, below FirstStream.
	FirstTable = 1024
	// FirstStream and LastStream are the first and last channels of streams of agreements.
	FirstStream = protocols.FirstStream
	LastStream  = protocols.LastStream
	// CommitChannel carries transactions, and OrderChannel the Byzantine order that decides them with protocol
	// Agreed.
	CommitChannel = 4096
	OrderChannel  = 4097
	// FirstTableOrder is the channel of the Byzantine order of the first table. The orders of the other tables follow,
	// up to LastTableOrder. A table that uses no such order leaves its channel unused.
	FirstTableOrder = 5120
	LastTableOrder  = FirstTableOrder + FirstStream - FirstTable - 1
)
