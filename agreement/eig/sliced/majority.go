package sliced

import "math/bits"

// The second stage gives a node the strict majority of its children's outputs, and the default
// if there is none. Both rules together are one threshold on the number of ones, the
// same for every receiver and every node of a rank.

// threshold returns how many ones among g children make the output a one: more than half of them,
// or at least half where the default, which wins the tie, is 1.
func threshold(g int, def uint64) int {
	return (g-int(def))/2 + 1
}

// atLeast returns the word of the receivers that see need ones or more among the words, of which
// there are at most 64: for bit r of the result, bit r of each word counts. The counts are
// bit-sliced: bit r of the plane 2^i is bit i of receiver r's count, so that one chain of adders
// counts for all receivers.
func atLeast(words []uint64, need int) uint64 {
	if need <= 0 {
		return ^uint64(0)
	}
	if need > len(words) {
		return 0
	}
	var p1, p2, p4, p8, p16, p32, p64 uint64
	for len(words) > 0 {
		var a, b, c, d uint64
		if len(words) >= 4 {
			a, b, c, d = words[0], words[1], words[2], words[3]
			words = words[4:]
		} else {
			a = words[0]
			if len(words) > 1 {
				b = words[1]
			}
			if len(words) > 2 {
				c = words[2]
			}
			words = nil
		}
		var carry1, carry2, carry uint64
		p1, carry1 = add3(p1, a, b)
		p1, carry2 = add3(p1, c, d)
		p2, carry = add3(p2, carry1, carry2)
		p4, carry = p4^carry, p4&carry
		p8, carry = p8^carry, p8&carry
		p16, carry = p16^carry, p16&carry
		p32, carry = p32^carry, p32&carry
		p64 |= carry
	}
	t := uint(need)
	reached := compare(^uint64(0), p1, t)
	reached = compare(reached, p2, t>>1)
	reached = compare(reached, p4, t>>2)
	reached = compare(reached, p8, t>>3)
	reached = compare(reached, p16, t>>4)
	reached = compare(reached, p32, t>>5)
	return compare(reached, p64, t>>6)
}

// atLeast7 is atLeast for seven words, zero where there are fewer, and a need of 1..7.
func atLeast7(words *[7]uint64, need int) uint64 {
	sum1, carry1 := add3(words[0], words[1], words[2])
	sum2, carry2 := add3(words[3], words[4], words[5])
	p1, carry3 := add3(sum1, sum2, words[6])
	p2, p4 := add3(carry1, carry2, carry3)
	t := uint(need)
	reached := compare(compare(^uint64(0), p1, t), p2, t>>1)
	return compare(reached, p4, t>>2)
}

// add3 adds three words receiver by receiver: a + b + c = sum + 2*carry.
func add3(a, b, c uint64) (sum, carry uint64) {
	half := a ^ b
	return half ^ c, a&b | half&c
}

// compare carries the answer to "is the count at least t" over from the lower planes to the next,
// whose bit of t is the lowest: the answer changes only for receivers whose bit differs from it.
func compare(reached, plane uint64, t uint) uint64 {
	zero := uint64(t&1) - 1 // all ones if the bit of t is 0
	return plane&reached | zero&(plane|reached)
}

func ones(set uint64) int { return bits.OnesCount64(set) }
