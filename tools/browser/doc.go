// Package browser tests the lab in the browser Chromium: the page that "parley lab" serves, and the same page as
// static files. It is a separate module, so that Parley itself does not depend on the library that controls the
// browser.
package browser
