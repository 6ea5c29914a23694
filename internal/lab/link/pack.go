package link

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"errors"
	"io"
)

// longestText is the length of the longest scenario in a link.
const longestText = 1 << 18

// Pack packs the text of a scenario for a link.
func Pack(text string) string {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.DefaultCompression)
	if err == nil {
		_, err = w.Write([]byte(text))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err) // the level is right, and a buffer takes everything
	}
	return base64.RawURLEncoding.EncodeToString(out.Bytes())
}

// Unpack reverses Pack, up to a limit: a few packed bytes can stand for a great text.
func Unpack(packed string) (string, error) {
	b, err := base64.RawURLEncoding.DecodeString(packed)
	if err != nil {
		return "", errors.New("its scenario is damaged")
	}
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(b)), longestText+1))
	switch {
	case len(text) > longestText:
		return "", errors.New("its scenario is too long")
	case err != nil:
		return "", errors.New("its scenario is damaged")
	}
	return string(text), nil
}
