// Package browser tests the lab in a browser, Chromium: the page that "parley lab" serves, and the same page as static
// files. It is a module of its own, so that Parley does not require a driver of browsers.
package browser
