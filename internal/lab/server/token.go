package server

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
)

// NewToken returns a new secret of 32 random bytes, as it stands in an address.
func NewToken() string {
	b := make([]byte, 32)
	rand.Read(b) // which never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// cookie returns the name of the cookie. Cookies do not distinguish ports, so the name does.
func cookie(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		port = scheme(r)
	}
	return "parley-lab-" + port
}

func (s *server) isToken(text string) bool {
	return subtle.ConstantTimeCompare([]byte(text), []byte(s.Token)) == 1
}

// stranger refuses requests without the cookie.
func (s *server) stranger(r *http.Request) *refusal {
	for _, c := range r.CookiesNamed(cookie(r)) {
		if s.isToken(c.Value) {
			return nil
		}
	}
	return refuse(http.StatusUnauthorized,
		"Refused: this tab has no valid token: open the address that the command printed when it started.")
}

// exchange sets the cookie for the token.
func (s *server) exchange(w http.ResponseWriter, r *http.Request) *refusal {
	b, err := body(w, r, 1<<10)
	if err != nil {
		return err
	}
	var sent struct {
		Token string `json:"token"`
	}
	if json.Unmarshal(b, &sent) != nil || !s.isToken(sent.Token) {
		return refuse(http.StatusForbidden,
			"Refused: the token in the address is wrong: open the address that the command printed when it started.")
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookie(r), Value: s.Token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
	w.WriteHeader(http.StatusNoContent)
	return nil
}
