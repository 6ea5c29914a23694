package browser_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/network"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var performance = flag.Bool("performance", false, "measure the lab, and write docs/lab-performance.md")

// figure is a measured figure beside its budget.
type figure struct {
	what, unit string
	budget     float64
	measured   float64
	more       string // other figures

}

func (f figure) met() bool { return f.measured <= f.budget }

// amount writes a number with its unit, with two digits at least.
func (f figure) amount(x float64) string {
	if x >= 100 {
		return fmt.Sprintf("%.0f %s", x, f.unit)
	}
	return fmt.Sprintf("%.2g %s", x, f.unit)
}

func (f figure) row() string {
	sign := "yes"
	if !f.met() {
		sign = "**no**"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |", f.what, f.amount(f.budget), f.amount(f.measured), sign, f.more)
}

// slow slows the processor and the network of a tab down, as a telephone is slow; 1 and 0 mean not at all.
func (b *tab) slow(processor float64, megabits float64) {
	b.t.Helper()
	throughput, latency := -1.0, 0.0
	if megabits > 0 {
		throughput, latency = megabits*1e6/8, 40
	}
	b.do(chromedp.Func(func(ctx context.Context, to *chromedp.Target) error {
		_, err := cdp.Call(ctx, to, emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: processor})
		if err != nil {
			return err
		}
		_, err = cdp.Call(ctx, to, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
			MatchedNetworkConditions: []*network.Conditions{{
				Latency: latency, DownloadThroughput: throughput, UploadThroughput: throughput,
			}},
		})
		return err
	}))
}

// heap returns the size of the page's heap in MB, after its garbage was collected.
func (b *tab) heap() float64 {
	b.t.Helper()
	used := 0.0
	b.do(chromedp.Func(func(ctx context.Context, to *chromedp.Target) error {
		if _, err := cdp.Call(ctx, to, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
			return err
		}
		got, err := cdp.Call(ctx, to, cdpruntime.GetHeapUsage, cdp.Empty{})
		used = (got.UsedSize + got.EmbedderHeapUsedSize + got.BackingStorageSize) / 1e6
		return err
	}))
	return used
}

// gzipped compresses what a web server compresses.
func gzipped(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := os.ReadFile(filepath.Join(built.site, filepath.FromSlash(r.URL.Path)))
		kind := map[string]string{".js": "text/javascript", ".css": "text/css", ".json": "application/json"}[filepath.Ext(r.URL.Path)]
		if err != nil || kind == "" {
			h.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Cache-Control", "max-age=3600")
		_, _ = w.Write(compressed(b))
	})
}

// narrow sends the engine at a rate: a worker loads it, and the browser slows down only what the page itself loads.
func narrow(h http.Handler, megabits float64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if megabits > 0 && strings.HasSuffix(r.URL.Path, ".gz") {
			w = &slowWriter{w, megabits}
		}
		h.ServeHTTP(w, r)
	})
}

type slowWriter struct {
	http.ResponseWriter
	megabits float64
}

func (w *slowWriter) Write(b []byte) (n int, err error) {
	for part := range slices.Chunk(b, 16<<10) {
		time.Sleep(time.Duration(float64(len(part)*8) / w.megabits * 1000))
		m, err := w.ResponseWriter.Write(part)
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

func compressed(b []byte) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level is right, and a buffer takes everything
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

// sizes returns the compressed sizes of the static form, by extension.
func sizes(t *testing.T) map[string]int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(built.site, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	total := make(map[string]int)
	for _, file := range files {
		kind := filepath.Ext(file)
		if !slices.Contains([]string{".js", ".css", ".wasm"}, kind) {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		total[kind] += len(compressed(b))
	}
	return total
}

// longTasks makes the page note its long tasks, from the next load on.
func (b *tab) longTasks() float64 {
	b.t.Helper()
	return evaluate[float64](b, `new Promise(done => {
		const seen = globalThis.longest ??= {most: 0};
		if (!seen.watch) {
			seen.watch = new PerformanceObserver(list => {
				for (const task of list.getEntries()) seen.most = Math.max(seen.most, task.duration);
			});
			seen.watch.observe({type: "longtask", buffered: true});
		}
		setTimeout(() => done(seen.most), 100);
	})`)
}

// scrubbed moves the cursor by some steps, and returns how long the script of a step takes: on average, for 95 of 100
// steps, and at most, in milliseconds.
func (b *tab) scrubbed(steps int) (average, most95, most float64) {
	b.t.Helper()
	times := evaluate[[]float64](b, `(async () => {
		const slider = document.querySelector(".rail input"), end = Number(slider.max), times = [];
		const {port1, port2} = new MessageChannel();
		const task = () => new Promise(done => { port1.onmessage = done; port2.postMessage(0); });
		for (let i = 0; i <= `+fmt.Sprint(steps)+`; i++) {
			const before = performance.now();
			slider.value = Math.round(end * i / `+fmt.Sprint(steps)+`);
			slider.dispatchEvent(new Event("input", {bubbles: true}));
			await task(); // what was rendered in microtasks is done
			times.push(performance.now() - before);
			await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
		}
		return times.slice(1);
	})()`)
	slices.Sort(times)
	for _, one := range times {
		average += one / float64(len(times))
	}
	return average, times[len(times)*95/100], times[len(times)-1]
}

// since returns how long the page, which was just opened, took until a condition was true, in milliseconds.
func (b *tab) since(condition string) float64 {
	b.t.Helper()
	return evaluate[float64](b, `new Promise(done => {
		const look = () => `+condition+` ? done(performance.now()) : requestAnimationFrame(look);
		look();
	})`)
}

const sceneIsThere = `document.querySelector(".picture svg")`

// started opens a run in the static form with an empty cache, on a slow computer or not, and returns when the page first
// painted, and when the scene was there; and the same when it is loaded again.
func started(t *testing.T, processor, megabits float64) (paint, scene, again float64) {
	t.Helper()
	b := open(t, "about:blank")
	b.slow(processor, megabits)
	address := static(t, "/", func(h http.Handler) http.Handler { return narrow(gzipped(h), megabits) }) + "#/run?g=article"
	b.do(chromedp.Navigate(address))
	scene = b.since(sceneIsThere)
	paint = evaluate[float64](b, `performance.getEntriesByName("first-contentful-paint")[0].startTime`)
	b.do(reload)
	again = b.since(sceneIsThere)
	return paint, scene, again
}

// asked returns how long a run of seven processes takes in an engine, in milliseconds: the middle of some.
func asked(b *tab, ask string) float64 {
	b.t.Helper()
	times := evaluate[[]float64](b, `(async () => {
		const times = [];
		for (let seed = 1; seed <= 12; seed++) {
			const before = performance.now();
			await (`+ask+`)(JSON.stringify({ask: "run", run: {protocol: "eig", flags:
				{n: "7", m: "2", faulty: "1=twofaced,5=flip", seed: String(seed)}}}));
			times.push(performance.now() - before);
		}
		return times;
	})()`)
	slices.Sort(times)
	return times[len(times)/2]
}

// large records a trace of half a million events.
func large(t *testing.T) (file string, events string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "large.jsonl")
	out, err := exec.Command(built.parley, "run", "diffusion", "-n", "40", "--workload", "{broadcasts: 305, within: 100000}",
		"--show", "verdict", "--trace", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, rest, _ := strings.Cut(string(out), "\n\n")
	for line := range strings.Lines(rest) {
		if before, _, found := strings.Cut(line, " events, trace "); found {
			events = before
		}
	}
	return file, events
}

// opened opens a trace file, and returns how long that takes in milliseconds, and how long a step of the cursor.
func (b *tab) opened(file, events string) (took, average, most float64) {
	b.t.Helper()
	b.says(shown)
	b.follow("#/gallery")
	b.until(`document.querySelector("input[type=file]")`)
	before := time.Now()
	b.do(chromedp.SetUploadFiles(`input[type=file]`, []string{file}))
	b.until(`document.querySelector(".whereabouts")?.textContent.includes(` + literal("of "+events) + `) && ` + sceneIsThere)
	took = float64(time.Since(before).Milliseconds())
	b.settled()
	average, _, most = b.scrubbed(40)
	return took, average, most
}

// thirteen is a link to a large run.
const thirteen = "#/run?s=eig&n=13&m=4&f=1:twofaced,5:flip,7:flip,9:random&lab=1"

// measure measures all figures.
func measure(t *testing.T) (all []figure) {
	size := sizes(t)
	all = append(all,
		figure{what: "JavaScript of the static form, gzip", unit: "kB", budget: 70, measured: float64(size[".js"]) / 1000,
			more: "with wasm_exec.js of Go"},
		figure{what: "style sheets, gzip", unit: "kB", budget: 12, measured: float64(size[".css"]) / 1000},
		figure{what: "engine (WebAssembly), gzip", unit: "MB", budget: 3.0, measured: float64(size[".wasm"]) / 1e6},
	)
	paint, scene, _ := started(t, 4, 10)
	all = append(all,
		figure{what: "the page appears: static, processor 4 times slower, 10 Mbit/s, empty cache", unit: "ms", budget: 1000,
			measured: paint},
		figure{what: "the scene of a run appears, in the same way", unit: "ms", budget: 1000, measured: scene,
			more: "the engine's worker has a processor that is not slower"})
	_, cold, warm := started(t, 1, 0)
	all = append(all,
		figure{what: "ready: scene of a run, static, empty cache", unit: "ms", budget: 2500, measured: cold},
		figure{what: "ready: the same, loaded again", unit: "ms", budget: 600, measured: warm})

	b := one(t)
	native := asked(b, `question => fetch("ask", {method: "POST", headers: {"Content-Type": "application/json"}, body: question})
		.then(r => r.text())`)
	compiled := asked(newEngines(t).tab, "askEngine")
	all = append(all, figure{what: "a run, n = 7, m = 2, in the browser", unit: "ms", budget: 60, measured: compiled,
		more: fmt.Sprintf("in the command %.1f ms", native)})

	for _, c := range []struct {
		what, fragment string
		budget         float64
	}{
		{"a step of the cursor, n = 7, m = 2, served", "#/run?g=article&at=0", 8},
		{"a step of the cursor, n = 13, m = 4, served", thirteen + "&at=0", 16},
	} {
		b.follow(c.fragment)
		b.until(sceneIsThere + ` && document.querySelector(".rail input")?.value === "0"`)
		b.settled()
		average, most95, most := b.scrubbed(200)
		all = append(all, figure{what: c.what, unit: "ms", budget: c.budget, measured: most95,
			more: fmt.Sprintf("95 of 100 steps; on average %.1f ms, at most %.1f ms", average, most)})
	}
	all = append(all, figure{what: "longest task of the page so far", unit: "ms", budget: 50, measured: b.longTasks(),
		more: "loading and scrubbing both runs"})
	for seed := range 100 {
		b.follow(fmt.Sprintf("#/run?s=eig&n=7&m=2&f=1:twofaced&seed=%d", seed))
		b.until(fmt.Sprintf(`document.querySelector(".title")?.textContent.includes("seed %d") && !document.querySelector(".busy")`, seed))
	}
	all = append(all, figure{what: "heap of the page after 100 runs", unit: "MB", budget: 250, measured: b.heap()})

	file, events := large(t)
	for _, form := range []string{"served", "static"} {
		b := open(t, forms[form](t))
		took, average, most := b.opened(file, events)
		all = append(all, figure{what: "a trace of " + events + " events is opened, " + form, unit: "ms", budget: 5000, measured: took,
			more: fmt.Sprintf("a step of the cursor: on average %.0f ms, at most %.0f ms", average, most)})
	}
	return all
}

// Measures the budgets of the lab, and writes docs/lab-performance.md. No figure makes the test fail.
func TestPerformance(t *testing.T) {
	if !*performance {
		return
	}
	all := measure(t)
	var rows, missed strings.Builder
	for _, f := range all {
		t.Log(f.row())
		fmt.Fprintln(&rows, f.row())
		if !f.met() {
			fmt.Fprintf(&missed, "- %s: %s, budget %s\n", f.what, f.amount(f.measured), f.amount(f.budget))
		}
	}
	writeFigures(t, rows.String(), missed.String())
}

const figuresPage = "../../docs/lab-performance.md"

// writeFigures writes the table between its marks.
func writeFigures(t *testing.T, rows, missed string) {
	t.Helper()
	text, err := os.ReadFile(figuresPage)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- lab: made by \"make lab-performance\" -->\n", "<!-- end of lab -->"
	head, rest, found := strings.Cut(string(text), begin)
	_, tail, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no marks", figuresPage)
	}
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		load = []byte("unknown")
	}
	if missed == "" {
		missed = "All budgets are met.\n"
	} else {
		missed = "Not met in this run:\n\n" + missed
	}
	made := fmt.Sprintf("\n%s, %d cores%s, %s, Chromium %s, load average %s.\n\n| what | budget | measured | met | |\n"+
		"| --- | ---: | ---: | --- | --- |\n%s\n%s\n",
		time.Now().Format("2006-01-02"), runtime.NumCPU(), processor(), runtime.Version(), chromium(t),
		strings.Join(strings.Fields(string(load))[:min(3, len(strings.Fields(string(load))))], " "), rows, missed)
	if err := os.WriteFile(figuresPage, []byte(head+begin+made+end+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}

// processor returns the name of the processor, if the system says it.
func processor() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	_, rest, found := strings.Cut(string(info), "model name\t: ")
	if !found {
		return ""
	}
	name, _, _ := strings.Cut(rest, "\n")
	return " of " + strings.Join(strings.Fields(name), " ")
}

// chromium returns the version of the browser.
func chromium(t *testing.T) string {
	b := open(t, "about:blank")
	_, rest, _ := strings.Cut(evaluate[string](b, "navigator.userAgent"), "Chrome/")
	version, _, _ := strings.Cut(rest, " ")
	return version
}
