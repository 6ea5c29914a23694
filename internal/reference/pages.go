package main

func (r *reference) pages() map[string]map[string]string { return nil }
func (r *reference) manual() map[string][]byte           { return nil }
