package idtype

import (
	"fmt"
	"sync"
)

// A sequenceID identifies sequences of this process that could create the same ID. Different
// ones never do.
type sequenceID struct {
	layout string
	node   int64 // 0 if layouts can divide the bits below the time; see spec.low
}

// sequencers holds the shared sequencers of this process. It keeps them forever, so that a
// generator also continues one that was dropped. A sequencer has less than 1 kB.
//
// There are several sequencers under an ID of Snos, one for each range of sequence numbers, and
// if layouts divide the bits below the time, one for each node number.
var sequencers struct {
	sync.Mutex
	of map[sequenceID][]*sequencer
}

// sequencerOf returns the sequencer for a new generator.
func sequencerOf(p spec, c clock, l Lease, alone bool, claim func(bool) (int64, error)) (*sequencer, error) {
	sequencers.Lock()
	defer sequencers.Unlock()
	if claim != nil {
		var err error
		if p.sequence.node, err = claim(alone); err != nil {
			return nil, err
		}
	}
	if alone {
		return newSequencer(p, c, l), nil
	}
	from, to := p.bits()
	for _, s := range sequencers.of[p.sequence] {
		switch first, last := s.bits(); {
		case first == from && last == to:
			return s, nil
		case first <= to && from <= last:
			return nil, overlapError(p, s)
		}
	}
	s := newSequencer(p, c, nil)
	if sequencers.of == nil {
		sequencers.of = map[sequenceID][]*sequencer{}
	}
	sequencers.of[p.sequence] = append(sequencers.of[p.sequence], s)
	return s, nil
}

// overlapError returns the error for a generator that could create IDs of another one, but
// can't continue its sequence.
func overlapError(p spec, s *sequencer) error {
	if p.toggles {
		return &configError{fmt.Sprintf("idtype: use sequence numbers %d to %d of Sno partition %d: a generator of this process uses %d to %d; set the same SequenceMin and SequenceMax to share them, or ranges that don't overlap",
			p.min, p.max, p.sequence.node, s.min, s.max)}
	}
	return &configError{fmt.Sprintf("idtype: start %s generator with the layout %q: a generator of this process with the layout %q creates the same IDs; use one layout for both, or node numbers whose bits differ",
		p.line.format, p.layout, s.layout)}
}
