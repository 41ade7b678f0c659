package idtype

import (
	"testing"
	"time"
)

// Generators report their layouts, also if the caller left it zero.
func TestGeneratorLayout(t *testing.T) {
	custom := SnowflakeLayout{Epoch: time.UnixMilli(0).UTC(), WorkerBits: 10, SequenceBits: 12}
	for _, l := range []SnowflakeLayout{{}, custom} {
		gen, err := NewSnowflakeGenerator(SnowflakeConfig{Layout: l})
		if err != nil || gen.Layout() != l.normal() {
			t.Errorf("%v: got %v, %v", l, gen.Layout(), err)
		}
		mapped, ok := GeneratorOf[struct{}](gen).(interface{ Source() Generator[Snowflake] })
		if !ok || mapped.Source() != Generator[Snowflake](gen) {
			t.Errorf("GeneratorOf: got the source %v, want %v", mapped, gen)
		}
	}
	base := SnowflakeSILayout{BaseClock: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}
	si, err := NewSnowflakeSIGenerator(SnowflakeSIConfig{Layout: base})
	if err != nil || si.Layout() != base.normal() {
		t.Errorf("got %v, %v", si.Layout(), err)
	}
}
