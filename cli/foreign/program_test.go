package foreign_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// variable is set in the environment of the programs that these tests start.
const variable = "PARLEY_TEST_PROGRAM"

// TestMain runs a program instead of the tests where a test starts this binary as one.
func TestMain(m *testing.M) {
	if os.Getenv(variable) == "" {
		os.Exit(m.Run())
	}
	if os.Args[1] == "grandchild" { // it lives as long as a connection, which the test watches
		if c, err := net.Dial("tcp", os.Args[2]); err == nil {
			fmt.Println("ready")
			_, _ = c.Read(make([]byte, 1))
		}
		return
	}
	new(program).run(os.Args[1])
}

// program broadcasts in FIFO order over diffusion. Its way is what it does wrong.
type program struct {
	way, self string
	out       *bufio.Writer
	nodes     []string
	sent      int
	known     map[string]bool
	waiting   map[string]string
	next      map[string]int
}

type fields map[string]any

func (p *program) send(dest string, body fields) {
	b, err := json.Marshal(fields{"src": p.self, "dest": dest, "body": body})
	if err != nil {
		panic(err)
	}
	_, _ = p.out.Write(append(b, '\n'))
}

func (p *program) run(way string) {
	p.way, p.out, p.known = way, bufio.NewWriter(os.Stdout), make(map[string]bool)
	p.waiting, p.next = make(map[string]string), make(map[string]int)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var l struct {
			Src  string
			Body struct {
				Type, Message, Origin string
				MsgID                 int      `json:"msg_id"`
				NodeID                string   `json:"node_id"`
				NodeIDs               []string `json:"node_ids"`
				Number                int
				Records               []int
				Restart               bool
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			panic(err)
		}
		switch l.Body.Type {
		case "init":
			p.init(l.Body.NodeID, l.Body.NodeIDs, l.Body.MsgID, l.Body.Records)
		case "broadcast":
			p.wrong()
			p.sent++
			p.send("parley", fields{"type": "append", "record": p.sent})
			p.diffuse(p.self, p.sent, l.Body.Message)
			p.send(l.Src, fields{"type": "broadcast_ok", "in_reply_to": l.Body.MsgID})
		case "diffuse":
			p.diffuse(l.Body.Origin, l.Body.Number, l.Body.Message)
		}
		if p.way != "no-done" {
			p.send("parley", fields{"type": "parley_done"})
		}
		if p.way == "late" && l.Body.Type == "init" {
			_, _ = p.out.WriteString(`{"dest":"parley","body":{"type":"decide","value":1}}` + "\n")
		}
		_ = p.out.Flush()
	}
}

func (p *program) init(self string, nodes []string, id int, records []int) {
	p.self, p.nodes = self, nodes
	for _, n := range nodes {
		p.next[n] = 1
	}
	for _, n := range records { // the broadcasts of an earlier incarnation do not come again
		p.sent, p.next[self] = n, n+1
	}
	switch p.way {
	case "no-init":
		select {}
	case "exit":
		fmt.Fprintln(os.Stderr, "a reason\nthe last words")
		os.Exit(3)
	case "init-error":
		p.send("c1", fields{"type": "parley_done"})
		p.send("", fields{"type": "parley_done"})
	}
	if address, ok := strings.CutPrefix(p.way, "parent="); ok {
		cmd := exec.Command(os.Args[0], "grandchild", address)
		out, err := cmd.StdoutPipe()
		if err == nil && cmd.Start() == nil {
			_, _ = out.Read(make([]byte, 5))
		}
	}
	p.send("c1", fields{"type": "init_ok", "in_reply_to": id})
}

func (p *program) diffuse(origin string, number int, message string) {
	name := fmt.Sprintf("%s#%d", origin, number)
	if p.known[name] {
		return
	}
	p.known[name], p.waiting[name] = true, message
	for _, n := range p.nodes {
		if n != p.self {
			p.send(n, fields{"type": "diffuse", "origin": origin, "number": number, "message": message})
		}
	}
	if p.way == "at-once" {
		p.send("parley", fields{"type": "deliver", "origin": origin, "message": message})
		return
	}
	for {
		name := fmt.Sprintf("%s#%d", origin, p.next[origin])
		m, ok := p.waiting[name]
		if !ok {
			return
		}
		p.send("parley", fields{"type": "deliver", "origin": origin, "message": m})
		delete(p.waiting, name)
		p.next[origin]++
	}
}

// wrong does what the way of the program says, when it is asked to broadcast.
func (p *program) wrong() {
	raw := map[string]string{
		"garbage": "hello\n", "blank": "\n", "array": "[1]\n", "no-body": `{"dest":"n1"}` + "\n",
		"forged":  `{"src":"n9","dest":"n1","body":{}}` + "\n",
		"nowhere": `{"dest":"lin-kv","body":{"type":"read"}}` + "\n",
		"unknown": `{"dest":"parley","body":{"type":"decides"}}` + "\n",
		"origin":  `{"dest":"parley","body":{"type":"deliver","origin":"n9","message":1}}` + "\n",
		"timer":   `{"dest":"parley","body":{"type":"set_timer","timer":-1,"after":1}}` + "\n",
		"type":    `{"dest":"parley","body":{"type":7}}` + "\n",
		"long":    strings.Repeat("x", 2<<20) + "\n", "cut": `{"dest":`,
		"many": strings.Repeat(`{"dest":"c1","body":{}}`+"\n", 20_000),
	}[p.way]
	if raw == "" {
		switch p.way {
		case "silent":
			_ = p.out.Flush()
			select {}
		case "trickle":
			for {
				p.send("c1", fields{"type": "x"})
				_ = p.out.Flush()
				time.Sleep(10 * time.Millisecond)
			}
		case "self":
			p.send(p.self, fields{"type": "diffuse"})
		}
		return
	}
	_ = p.out.Flush()
	_, _ = os.Stdout.WriteString(raw)
	if p.way == "cut" {
		os.Exit(0)
	}
	time.Sleep(time.Hour) // only the end of the run ends it
}
