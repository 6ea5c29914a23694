package engine

// PresetsAnswer is the answer to "presets": searches worth making.
type PresetsAnswer struct {
	Presets []Preset `json:"presets"`
}

// Preset is a search with a question that it answers, and how it ends, which a test checks.
type Preset struct {
	Title   string `json:"title"`
	Asks    string `json:"asks"`
	Pairs   bool   `json:"pairs"` // it searches for runs that look the same
	Outcome string `json:"outcome"`
	Model   Model  `json:"model"`
}

// presets are from the article and the lecture. All of them end within seconds.
var presets = []Preset{
	{
		Title: "Three generals, one traitor", Outcome: "found",
		Asks: "Can oral messages outvote a traitor with n = 3?",
		Model: Model{"om", map[string]string{
			"n": "3", "m": "1", "beyond-bound": "true", "step": "round", "property": "validity",
		}},
	},
	{
		Title: "Four generals, one traitor", Outcome: "exhausted",
		Asks:  "And with n = 4? Every lie of every traitor is tried.",
		Model: Model{"om", map[string]string{"n": "4", "m": "1", "step": "round"}},
	},
	{
		Title: "Why no rule can help", Pairs: true, Outcome: "found",
		Asks:  "Which runs with n = 3 look the same to a process that must decide differently in them?",
		Model: Model{"om", map[string]string{"n": "3", "m": "1", "beyond-bound": "true"}},
	},
	{
		Title: "Signatures", Asks: "With signed messages n = 3 is enough: is it?", Outcome: "exhausted",
		Model: Model{"sm", map[string]string{"n": "3", "m": "1", "step": "round"}},
	},
	{
		Title: "One round fewer", Pairs: true, Outcome: "found",
		Asks:  "Four processes stop after m rounds. What can one of them not tell apart?",
		Model: Model{"eig", map[string]string{"n": "4", "m": "1", "rounds": "1", "beyond-bound": "true"}},
	},
	{
		Title: "The phase king", Asks: "Does a faulty king divide five processes?", Outcome: "exhausted",
		Model: Model{"phaseking", map[string]string{
			"form": "tworound", "n": "5", "m": "1", "faulty": "1", "values": "0,0,1,1,1", "step": "round",
		}},
	},
	{
		Title: "Two-phase commit blocks", Outcome: "found",
		Asks: "Is there a crash after which correct participants can neither commit nor abort?",
		Model: Model{"twophase", map[string]string{
			"n": "3", "crashes": "1", "property": "non-blocking", "beyond-bound": "true",
		}},
	},
	{
		Title: "Three-phase commit does not", Asks: "The same crash, with one phase more.", Outcome: "exhausted",
		Model: Model{"threephase", map[string]string{"n": "3", "crashes": "1", "property": "non-blocking", "values": "yes"}},
	},
}
