// Package group will hold agreed views.
package group
