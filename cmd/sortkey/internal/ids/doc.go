// Package ids offers the ID types of package idtype as formats with one interface. It reads
// IDs of any type from their texts, also IDs of other libraries.
package ids
