// Minter creates IDs with a claimed node number, in a process that tests can kill, stop
// and cut off from the store. It records each ID in a journal before it uses the ID. It
// reports the events of its claims on standard output, in lines of JSON.
//
//	minter -postgres URL -format snowflake:2 -ttl 3s -journal FILE
//
// On SIGTERM it releases its number and ends. It reads commands from standard input:
// "clock 1h" sets its clock an hour ahead. At the end of the input it ends.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/nodelease/internal/journal"
	"github.com/sortkey/sortkey/nodelease"
)

const (
	// maxBatch limits the IDs of one call. They fit into a unit of time; a larger batch
	// would keep a processor busy waiting for the next unit.
	maxBatch = 150
	// maxPause limits the pause between two calls. It is so short that two generators
	// with the same number would use the same unit many times per second.
	maxPause = 10 * time.Millisecond
	// insist is how long the first claim is retried after errors other than a BusyError.
	insist = 10 * time.Minute
	// tellEvery is the interval between reports of progress.
	tellEvery = 50 * time.Millisecond
)

func main() {
	var p program
	var format, pool, name string
	var store storeFlags
	flag.StringVar(&store.postgres, "postgres", "", "the URL of a database with the migrations")
	flag.StringVar(&store.zookeeper, "zookeeper", "", "servers, with commas between them")
	flag.StringVar(&store.root, "root", "", "the path in ZooKeeper")
	flag.StringVar(&format, "format", "snowflake:2", "the format of the IDs and its node numbers, such as snowflake:2 or sno:3")
	flag.StringVar(&pool, "pool", "", "the name of the pool; default: the format's")
	flag.DurationVar(&p.o.TTL, "ttl", 3*time.Second, "the TTL of a claim")
	flag.DurationVar(&p.o.Wait, "wait", 0, "how long to wait for a number; 0 means twice the TTL")
	flag.BoolVar(&p.reacquire, "reacquire", false, "claim another number after a loss")
	flag.BoolVar(&p.offsets, "clock", false, "use a clock that commands can set")
	offset := flag.Duration("offset", 0, "how far that clock is ahead; implies -clock")
	flag.StringVar(&name, "journal", "", "the file to which to write IDs")
	flag.DurationVar(&p.try, "try", time.Second, "how long to continue calling the generator after a loss")
	flag.BoolVar(&p.deaf, "deaf", false, "ignore the loss of a claim, to test that duplicates are found")
	flag.Uint64Var(&p.seed, "seed", 1, "the seed of the batch sizes and pauses")
	flag.Parse()

	slog.SetDefault(slog.New(slog.DiscardHandler)) // the journal has the events, and the tests fail if there is other output
	p.offsets = p.offsets || *offset != 0
	p.offset.Store(int64(*offset))
	os.Exit(p.main(format, pool, name, store))
}

// A program is the state of the process.
type program struct {
	o         nodelease.Options
	reacquire bool
	format    journal.Format
	offsets   bool
	offset    atomic.Int64 // a time.Duration
	try       time.Duration
	deaf      bool
	seed      uint64
	begun     time.Time
	journal   *journal.Writer
	minted    uint64

	out sync.Mutex
}

func (p *program) main(format, pool, name string, flags storeFlags) int {
	p.begun = time.Now()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go p.obey()
	err := func() (err error) {
		if p.format, err = journal.ParseFormat(format); err != nil {
			return err
		}
		if pool != "" {
			p.format.Pool.Name = pool
		}
		if p.journal, err = journal.Create(name); err != nil {
			return err
		}
		store, done, err := flags.open(p.o.TTL)
		if err != nil {
			return err
		}
		defer done()
		return p.run(ctx, &watched{Store: store, p: p, granted: map[int64]time.Duration{}})
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// obey runs commands from standard input. At the end of the input, which means that the
// parent process has ended, it ends the program.
func (p *program) obey() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		order, value, _ := strings.Cut(lines.Text(), " ")
		d, err := time.ParseDuration(value)
		if order != "clock" || err != nil || !p.offsets {
			fmt.Fprintf(os.Stderr, "invalid command %q: want one such as \"clock 1h\", and the flag -clock\n", lines.Text())
			os.Exit(2)
		}
		p.offset.Store(int64(d))
	}
	os.Exit(2)
}

// clock returns a clock that can be set, or nil for the system clock, for which
// generators have a faster path.
func (p *program) clock() func() time.Time {
	if !p.offsets {
		return nil
	}
	return func() time.Time { return time.Now().Add(time.Duration(p.offset.Load())) }
}

func (p *program) tell(e journal.Event) {
	line, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	p.out.Lock()
	defer p.out.Unlock()
	_, _ = os.Stdout.Write(append(line, '\n'))
}

// told returns an event with an error.
func told(event string, err error) journal.Event {
	e := journal.Event{Event: event}
	if err != nil {
		e.Error = err.Error()
		e.LeaseLost = errors.Is(err, idtype.ErrLeaseLost)
		e.Exhausted = errors.Is(err, nodelease.ErrPoolExhausted)
		e.Behind = errors.Is(err, nodelease.ErrClockBehind)
		if busy := (*nodelease.BusyError)(nil); errors.As(err, &busy) {
			e.RetryAfter = busy.RetryAfter
		}
		e.Superseded = errors.Is(err, nodelease.ErrSuperseded)
		e.NoAnswer = errors.Is(err, context.DeadlineExceeded)
	}
	return e
}

// A generator has a claim, and releases its number at the end.
type generator interface {
	idtype.Generator[journal.ID]
	Keeper() *nodelease.Keeper
	Close() error
}

// single is a generator with one claim.
type single struct {
	idtype.Generator[journal.ID]
	k *nodelease.Keeper
}

func (s single) Keeper() *nodelease.Keeper { return s.k }
func (s single) Close() error              { return s.k.Close() }

// open claims a number.
func (p *program) open(ctx context.Context, store *watched) (generator, error) {
	if p.reacquire {
		return nodelease.NewGenerator(ctx, store, p.format.Pool, p.o, func(l idtype.Lease) (idtype.Generator[journal.ID], error) {
			return p.build(l.(*nodelease.Keeper), store)
		})
	}
	k, err := nodelease.Acquire(ctx, store, p.format.Pool, p.o)
	if err != nil {
		return nil, err
	}
	ids, err := p.build(k, store)
	if err != nil {
		return nil, errors.Join(err, k.Close())
	}
	return single{ids, k}, nil
}

func (p *program) run(ctx context.Context, store *watched) error {
	p.o.Clock = p.clock()
	var g generator
	for {
		begun := time.Now()
		var err error
		g, err = p.open(ctx, store)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return nil
		}
		e := told(journal.Failed, err)
		e.Took = time.Since(begun)
		if e.Exhausted || e.Behind {
			p.tell(e)
			return nil
		}
		// The server is down or busy: retry.
		if time.Since(p.begun) > insist {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	err := p.mint(ctx, g)
	e, stats := told(journal.Closed, g.Close()), g.Keeper().Stats()
	e.Renewals, e.Failures = stats.Renewals, stats.Failures
	p.tell(e)
	return err
}

// mint creates IDs until the context ends or the claim is lost permanently.
func (p *program) mint(ctx context.Context, g generator) error {
	random := rand.New(rand.NewPCG(p.seed, 0))
	batch := make([]journal.ID, maxBatch)
	var next, lost time.Time
	var refusedTerm int64
	after := journal.Event{Event: journal.Tried}
	for ctx.Err() == nil {
		var err error
		if random.IntN(4) == 0 {
			_, err = g.Next()
		} else {
			_, err = g.Fill(ctx, batch[:random.IntN(maxBatch)+1])
		}
		switch {
		case err == nil:
			after.Minted++
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errJournal):
			return err
		case errors.Is(err, idtype.ErrLeaseLost):
			after.Refusals++
			// Report this once per claim.
			if term := g.Keeper().Stats().Term; term != refusedTerm {
				refusedTerm = term
				p.tell(told(journal.Refused, err))
			}
		case errors.Is(err, idtype.ErrLeaseNotRenewed):
			after.Refusals++
		case errors.Is(err, idtype.ErrClockBackwards):
			// A command has set the clock back.
		default:
			return err
		}
		if now := time.Now(); now.After(next) {
			next = now.Add(tellEvery)
			p.tell(journal.Event{Event: journal.Progress, Minted: p.minted})
		}
		if !p.reacquire && g.Keeper().Err() != nil {
			if lost.IsZero() {
				lost = time.Now()
				after.Minted, after.Refusals = 0, 0
			} else if time.Since(lost) > p.try {
				p.tell(after)
				return nil
			}
		}
		select {
		case <-time.After(time.Duration(random.Int64N(int64(maxPause)))):
		case <-ctx.Done():
		}
	}
	return nil
}
