package docs

import "testing"

func TestStatements(t *testing.T) {
	p := Piece{SQL: "SELECT ';',\n  1; -- one\n\nSELECT 2;\n"}
	if got := p.Statements(); len(got) != 2 || got[1] != "\nSELECT 2" {
		t.Errorf("expected 2 statements, got %q", got)
	}
}
