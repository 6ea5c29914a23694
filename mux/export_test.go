package mux

// OfEach is a property of every instance.
var OfEach = ofEach
