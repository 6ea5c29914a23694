package parleytest

// Every calls run once for every sequence of answers that its choices can get,
// in lexicographic order, and returns how many there are. A run asks choose for
// each of its choices, in an order that depends on the answers alone: with it a
// behaviour whose Choose asks choose(n) enumerates all adversaries.
func Every(run func(choose func(n int) int)) int {
	var digits, sizes []int
	for runs := 1; ; runs++ {
		at := 0
		run(func(n int) int {
			if at == len(digits) {
				digits, sizes = append(digits, 0), append(sizes, n)
			}
			if sizes[at] != n {
				panic("parleytest: a run made other choices after the same answers")
			}
			at++
			return digits[at-1]
		})
		last := len(digits) - 1
		for last >= 0 && digits[last] == sizes[last]-1 {
			last--
		}
		if last < 0 {
			return runs
		}
		digits, sizes = digits[:last+1], sizes[:last+1]
		digits[last]++
	}
}
