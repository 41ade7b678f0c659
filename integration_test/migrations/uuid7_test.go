package migrations

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// A uuid7Order is a model whose keys are TypeIDs.
type uuid7Order struct{}

func (uuid7Order) IDPrefix() string { return "pre_fix" }

// Go and SQL functions return the same times, bounds and texts, with any session settings.
func TestUUID7(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, parityTry)
		conn, odd := db.Conn(t), db.Conn(t)
		exec(t, odd, parityOdd(db))
		r := rand.New(rand.NewPCG(1, 2))
		var ids []idtype.UUID
		for _, s := range []string{"00000000-0000-0000-0000-000000000000", "00000000-0000-7000-8000-000000000000", "ffffffff-ffff-7fff-bfff-ffffffffffff",
			"ffffffff-ffff-ffff-ffff-ffffffffffff", "017f22e2-79b0-7cc3-18c4-dc0c0c07398f", "919108f7-52d1-4320-9bac-f847db4148a8"} {
			ids = append(ids, idtype.Must(idtype.ParseUUID(s)))
		}
		for range 2000 {
			id := idtype.UUID(uuid.New())
			if r.IntN(2) == 0 { // any time of version 7
				id[6] = id[6]&0xf | 0x70
			}
			ids = append(ids, id)
		}
		var stored, typeIDs []string
		for _, id := range ids {
			stored, typeIDs = append(stored, id.String()), append(typeIDs, idtype.UUIDOf[uuid7Order](id).String())
		}
		layout := idtype.UUIDLayout{}
		lo, hi, err := layout.Range(time.Time{}, time.Time{})
		must(t, err)
		f := &format{
			schema: "sortkey", name: "uuid7", title: "UUID", unit: time.Millisecond, first: time.UnixMilli(0), last: time.UnixMilli(1<<48 - 1), lo: lo.String(), hi: hi.String(),
			floor: func(at time.Time) (string, error) {
				id, err := layout.Floor(at)
				return id.String(), err
			},
		}
		for name, c := range map[string]*pgx.Conn{"plain": conn, "odd": odd} {
			f.compareFloors(t, c, 1000)
			times := parityValues(t, c, "coalesce("+parityMicros("sortkey.uuid7_time(x::uuid)")+"::text, 'none')", stored)
			texts := parityValues(t, c, "sortkey.typeid_text('pre_fix', x::uuid)", stored)
			parsed := parityValues(t, c, "sortkey.typeid_from_text(x)", typeIDs)
			for i, id := range ids {
				at, err := id.Time()
				want := fmt.Sprint(at.UnixMicro())
				if errors.Is(err, idtype.ErrVersion) {
					want = "none"
				} else {
					must(t, err)
				}
				if times[i] != want || texts[i] != typeIDs[i] || parsed[i] != stored[i] {
					t.Errorf("%s: %v: SQL returns the time %s, the TypeID %s and the UUID of the TypeID %s, Go %s and %s", name, id, times[i], texts[i], parsed[i], want, typeIDs[i])
				}
			}
		}

		for _, prefix := range []string{"v2", "a_", strings.Repeat("a", 64)} {
			_, err := conn.Exec(t.Context(), "SELECT sortkey.typeid_text($1, gen_random_uuid())", prefix)
			wantError(t, err, nil, parityQuoted(prefix)+" is not the prefix of a TypeID")
		}
		for _, text := range []string{"prefix_8zzzzzzzzzzzzzzzzzzzzzzzzz", "PREFIX_00000000000000000000000000", "_00000000000000000000000000",
			"prefix__00000000000000000000000000", "0000000000000000000000000l", "00000000000000000000000000\n"} {
			_, err := conn.Exec(t.Context(), "SELECT sortkey.typeid_from_text($1)", text)
			wantError(t, err, nil, "cannot parse "+parityQuoted(text)+" as TypeID")
		}
		wantValue(t, conn, "SELECT '017f22e2-79b0-7cc3-98c4-dc0c0c07398f'::sortkey.uuid7 IS NULL", false)
	})
}

// Defaults create UUIDs of version 7 that increase from microsecond to microsecond, with
// the time of the server's clock.
func TestNextUUID7(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		exec(t, conn, "CREATE TABLE o (n int GENERATED ALWAYS AS IDENTITY, id sortkey.uuid7 PRIMARY KEY DEFAULT sortkey.next_uuid7(), before timestamptz DEFAULT clock_timestamp())")
		exec(t, conn, "INSERT INTO o SELECT FROM generate_series(1, 20000)")
		wantValue(t, conn, `SELECT min(late) >= '-1 ms' AND percentile_disc(0.5) WITHIN GROUP (ORDER BY late) <= '10 ms'
			FROM (SELECT before - sortkey.uuid7_time(id) AS late FROM o) x`, true)
		for range 100 {
			exec(t, conn, "INSERT INTO o DEFAULT VALUES")
		}
		wantValue(t, conn, "SELECT bool_and(id > previous) FROM (SELECT id, lag(id) OVER (ORDER BY n) AS previous FROM o WHERE n > 20000) x", true)
		// A hostile search_path changes nothing.
		db.Exec(t, `CREATE SCHEMA evil; CREATE FUNCTION evil.gen_random_uuid() RETURNS uuid LANGUAGE sql RETURN '00000000-0000-7000-8000-000000000000'::uuid;
			CREATE FUNCTION evil.clock_timestamp() RETURNS timestamptz LANGUAGE sql RETURN 'epoch'::timestamptz`)
		exec(t, conn, "SET search_path = evil, pg_catalog")
		wantValue(t, conn, "INSERT INTO public.o DEFAULT VALUES RETURNING abs(extract(epoch FROM now() - sortkey.uuid7_time(id))) < 60", true)
	})
}

// uuid7_at creates UUIDs of past times, in the order of their microseconds, as UUIDLayout.At does in
// Go.
func TestUUID7At(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		wantValue(t, conn, `SELECT bool_and(sortkey.uuid7_time(id) = date_trunc('milliseconds', t) AND id::sortkey.uuid7 > previous) AND count(DISTINCT id) = 3000
			FROM (SELECT t, id, coalesce(lag(id) OVER (ORDER BY t), sortkey.uuid7_floor('1970-01-01Z')) AS previous
				FROM (SELECT t, sortkey.uuid7_at(t) AS id FROM generate_series(0, 2999) n, LATERAL (SELECT timestamptz '2024-05-06 07:08:09.122998Z' + n * interval '1 us') x (t)) y) z`, true)
		for _, at := range []string{"1970-01-01 00:00:00.000001Z", "2024-05-06 07:08:09.123456Z", "10889-08-02 05:31:50.655999Z"} {
			var made idtype.UUID
			moment := pgtest.Value[time.Time](t, conn, "SELECT $1::text::timestamptz", at)
			must(t, made.Scan(pgtest.Value[string](t, conn, "SELECT sortkey.uuid7_at($1::text::timestamptz)::text", at)))
			want, err := idtype.UUIDLayout{}.At(moment)
			must(t, err)
			if made.String()[:18] != want.String()[:18] || made == want {
				t.Errorf("%s: SQL returns %v, Go %v", at, made, want)
			}
		}
		fails(t, conn, "22008", "SELECT sortkey.uuid7_at('1969-12-31Z')", "out of range for UUID")
		fails(t, conn, "22008", "SELECT sortkey.uuid7_at('infinity')", "cannot generate an ID for time infinity")
		wantValue(t, conn, "SELECT sortkey.uuid7_at(NULL) IS NULL", true)
	})
}
