package parleytest

// Every calls run once for every sequence of answers to its choices, in lexicographic order, and returns the
// number of calls. A run must call choose for each of its choices, in an order that depends only on the
// answers. So Every enumerates all adversaries if the Choose of a behavior calls choose(n).
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
