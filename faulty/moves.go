package faulty

import (
	"fmt"
	"strconv"
	"strings"

	"parley"
)

// Move is the answer to one choice of a faulty process in a protocol with rounds: what it sends to one receiver in one
// round. Choice counts the choices of that turn from 0.
type Move struct {
	Round  int
	To     parley.ID
	Choice int
	Answer int
}

// moves begins the names of behaviors that consist of moves.
const moves = "moves:"

// String returns the move as ROUND-RECEIVER-CHOICE-ANSWER, with the receivers counted from 1.
func (m Move) String() string {
	return fmt.Sprintf("%d-%d-%d-%d", m.Round, m.To+1, m.Choice, m.Answer)
}

// Moves returns the behavior of a process that makes the given moves and is honest otherwise. Of several moves in one
// choice the last one counts.
func Moves(all ...Move) Behavior {
	answers := make(map[Move]int)
	parts := make([]string, len(all))
	for i, m := range all {
		parts[i] = m.String()
		answers[Move{Round: m.Round, To: m.To, Choice: m.Choice}] = m.Answer
	}
	return Behavior{
		Name: moves + strings.Join(parts, "."), Model: parley.SignedByzantineFaults, Rounds: true,
		Choose: func(_ *parley.Step, t *parley.Turn, k, n int) int {
			return min(answers[Move{Round: RoundOf(t), To: t.To, Choice: k}], n-1)
		},
	}
}

// RoundOf returns the round of a turn in a protocol with rounds, whose messages carry it in Seq. It returns -1 if an
// honest process sends nothing in the turn.
func RoundOf(t *parley.Turn) int {
	if len(t.Honest) == 0 {
		return -1
	}
	return int(t.Honest[0].Msg.Seq)
}

// parseMoves reads a behavior from its name.
func parseMoves(text string) (Behavior, error) {
	var all []Move
	for part := range strings.SplitSeq(text, ".") {
		if text == "" {
			break
		}
		numbers := strings.Split(part, "-")
		var at [4]int
		for i, one := range numbers {
			n, err := strconv.ParseUint(one, 10, 16)
			if err != nil || len(numbers) != len(at) {
				return Behavior{}, wrongMove(part)
			}
			at[i] = int(n)
		}
		if at[1] < 1 || at[1] > parley.MaxProcesses {
			return Behavior{}, wrongMove(part)
		}
		all = append(all, Move{Round: at[0], To: parley.ID(at[1] - 1), Choice: at[2], Answer: at[3]})
	}
	return Moves(all...), nil
}

func wrongMove(text string) error {
	return fmt.Errorf("%.40q is not a move: write ROUND-RECEIVER-CHOICE-ANSWER, as in moves:1-3-0-1", text)
}
