// Package links finds links that lead nowhere, in the comments of packages and in
// the Markdown files of this repository. It looks at what is here alone: a link to
// another site may break without a change of ours, and no change is to wait for
// another site.
package links
