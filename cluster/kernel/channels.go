package kernel

// The channels of a node's machines: those of one service are none of another's, and all nodes have them alike.
const (
	ClockChannel = 1
	// AdminChannel carries what nodes say of each other: their votes to expel, and where their disks stand.
	AdminChannel = 2
	// FirstGroup is the channel of the first group; the others follow, up to FirstTable.
	FirstGroup = 16
	// FirstTable is the channel of the first table; the others follow, up to FirstStream.
	FirstTable = 1024
	// FirstStream and LastStream are the first and the last channel of the streams of agreements.
	FirstStream = 2048
	LastStream  = 4095
	// CommitChannel carries transactions, and OrderChannel the order which decides them in spite of liars.
	CommitChannel = 4096
	OrderChannel  = 4097
)
