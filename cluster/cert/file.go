package cert

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// inFile adds the file's name to an error.
func inFile(file string, err error) error { return fmt.Errorf("%s: %w", file, err) }

func encode(kind string, ders ...[]byte) []byte {
	var out []byte
	for _, der := range ders {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})...)
	}
	return out
}

// writer is writeNew or replace.
type writer func(name string, b []byte, mode fs.FileMode) error

// writeKey writes a key, readable by its owner only.
func writeKey(write writer, name string, key any) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return write(name, encode(pemKey, der), 0o600)
}

// lock prevents other commands from writing into the folder.
func lock(dir string) (unlock func(), err error) {
	name := filepath.Join(dir, lockFile)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s is there: another command writes into the folder; if none does, remove it", name)
	}
	if err != nil {
		return nil, err
	}
	return func() { _ = os.Remove(name) }, f.Close()
}

// replace replaces a file so that a reader finds either the old or the new content.
func replace(name string, b []byte, mode fs.FileMode) error {
	temporary := name + ".new"
	_ = os.Remove(temporary) // of a killed command
	if err := writeNew(temporary, b, mode); err != nil {
		return err
	}
	if err := os.Rename(temporary, name); err != nil {
		return err
	}
	// Not every system can sync the folder itself.
	if dir, err := os.Open(filepath.Dir(name)); err == nil {
		_ = dir.Sync()
		return dir.Close()
	}
	return nil
}

// writeNew writes and syncs a file that must not exist yet.
func writeNew(name string, b []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already, and is not overwritten", name)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}
