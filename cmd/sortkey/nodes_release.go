package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/internal/dbhealth"
	"github.com/spf13/cobra"
)

func (c *app) nodesReleaseCommand() *cobra.Command {
	var pool string
	var number int
	var force bool
	cmd := installedCommand(&cobra.Command{
		Use:   "release POOL NUMBER",
		Short: "Cancel a reservation, or take a number away from its holder",
		Long: `Release cancels the reservation of a number that generates no more IDs. It fails
if a default or the setting sortkey.node may use the number: change them first,
and end the sessions that have used the number, since a session checks its
number only once. Release can't find such sessions, nor calls in triggers and
PL/pgSQL functions. If a program claims the number meanwhile, both can generate
the same IDs.

With --force it also takes a number away from the program that holds it. For a
claim this is safe at any time: the holder generates IDs up to its high-water
mark at most, and the next holder starts after it.`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: completePools,
		PreRunE: func(_ *cobra.Command, args []string) (err error) {
			pool, number, err = parsePoolNumber(args)
			return err
		},
	}, func(ctx context.Context, db database, _ []string) error {
		r, err := db.release(ctx, pool, number, force)
		if err != nil {
			return err
		}
		return c.printRelease(r)
	}, mayList, mayRelease)
	cmd.Flags().BoolVar(&force, "force", false, "take the number away from the program that holds it")
	return cmd
}

// A release is the result of release.
type release struct {
	Pool     string           `json:"pool"`
	Number   int              `json:"number"`
	Released string           `json:"released"` // reservation or claim
	Holder   *string          `json:"holder"`   // the former holder
	Note     *string          `json:"note"`     // the former note
	Mark     *dbhealth.Moment `json:"mark"`
}

// release frees a number.
func (db database) release(ctx context.Context, pool string, number int, force bool) (release, error) {
	r := release{Pool: pool, Number: number}
	l, err := db.node(ctx, pool, number)
	if err != nil {
		return r, err
	}
	r.Holder, r.Note = l.Holder, l.Note
	switch {
	case l.Holder == nil && l.Note == nil:
		return r, fmt.Errorf("number %d of pool %s is free already", number, pool)
	case l.Holder != nil && !force:
		until := "its claim has expired, but it can renew the claim"
		if l.State == "held" {
			until = "until " + l.ExpiresAt.Stamp() + ", unless renewed"
		}
		return r, fmt.Errorf("number %d of pool %s is held by %q (%s); stop the holder, or pass --force to take the number away", number, pool, *l.Holder, until)
	case l.Note != nil && l.inRange:
		if err := db.refuseUsed(ctx, l); err != nil {
			return r, err
		}
	}
	err = cli.Begin(ctx, db, pgx.TxOptions{}, func(tx pgx.Tx) error {
		if l.Note != nil {
			// It also ends a claim, and keeps the mark of the holder.
			r.Released = "reservation"
			_, err := tx.Exec(ctx, db.sql(`SELECT $s.unreserve_node($1, $2)`), pool, number)
			return err
		}
		r.Released = "claim"
		// The term excludes the claim of a later holder, which the user hasn't seen.
		tag, err := tx.Exec(ctx, db.sql(`UPDATE $s.node_lease SET holder = NULL, expires_at = NULL
			WHERE pool = $1 AND number = $2 AND term = $3 AND holder IS NOT NULL`), pool, number, l.Term)
		if err == nil && tag.RowsAffected() == 0 {
			err = fmt.Errorf("number %d of pool %s has changed hands in the meantime; run %s", number, pool, db.command("nodes list %s %d", pool, number))
		}
		return err
	})
	switch {
	case err != nil && r.Released == "claim":
		err = db.explain(ctx, err, mayList, mayTake)
	case err == nil:
		err = cli.ReadRow(ctx, db, []any{&r.Mark}, db.sql(`SELECT `+dbhealth.MomentOf("s.mark")+` FROM $s.node_status s WHERE s.pool = $1 AND s.number = $2`), pool, number)
	}
	return r, err
}

// refuseUsed returns an error if a default or a setting may use a reserved number.
func (db database) refuseUsed(ctx context.Context, l node) error {
	// The workers of a Citus cluster have settings of their own.
	var opaque, session string
	var settings []string
	err := cli.ReadRow(ctx, db, []any{&opaque, &session, &settings}, db.sql(`
		SELECT coalesce((SELECT format('%s %s (default %s)', d.kind, d.name, d.expression) FROM $s.node_defaults d
				WHERE d.number IS NULL AND NOT d.from_setting AND d.format = $1 ORDER BY 1 LIMIT 1), ''),
			coalesce(current_setting('$s.node', true), ''),
			ARRAY(SELECT 'ALTER ' || CASE
					WHEN s.setrole = 0 AND s.setdatabase = 0 THEN 'ROLE ALL' WHEN s.setrole = 0 THEN format('DATABASE %I', current_database())
					WHEN s.setdatabase = 0 THEN format('ROLE %I', pg_get_userbyid(s.setrole)) ELSE format('ROLE %I IN DATABASE %I', pg_get_userbyid(s.setrole), current_database()) END
					|| ' RESET ' || split_part(c, '=', 1)
				FROM pg_db_role_setting s, unnest(s.setconfig) c
				WHERE s.setdatabase IN (0, (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()))
					AND c ~* ('^$s\.node(_[0-9]+)?=' || $2 || '$')
				ORDER BY 1)`), l.format, strconv.Itoa(l.setting))
	if err != nil {
		return err
	}
	var uses, remedies []string
	if len(l.Defaults) > 0 {
		d, more := l.Defaults[0], ""
		if n := len(l.Defaults) - 1; n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		uses = append(uses, fmt.Sprintf("%s %s (default %s)%s", d.Kind, d.Name, d.Expression, more))
		if !d.FromSetting {
			remedies = append(remedies, "change the default")
		}
	}
	if opaque != "" {
		uses = append(uses, opaque+", whose number is no literal")
		remedies = append(remedies, "pass a literal in that default")
	}
	setting := db.Schema + ".node"
	switch {
	case len(settings) > 0:
		uses = append(uses, "the setting "+setting)
		remedies = append(remedies, "run "+strings.Join(settings, "; "))
	case session == strconv.Itoa(l.setting):
		uses = append(uses, "the setting "+setting)
		remedies = append(remedies, "remove the setting "+setting+" from the connection strings and the server's configuration")
	}
	if len(uses) == 0 {
		return nil
	}
	return fmt.Errorf("number %d of pool %s is reserved, and may be used by %s; first %s, and end the sessions that have used the number; or run SELECT %s.unreserve_node('%[2]s', %[1]d) if you know that no session uses it",
		l.Number.Number, l.Pool, strings.Join(uses, " and by "), strings.Join(remedies, ", "), db.Schema)
}

func (c *app) printRelease(r release) error {
	done, sessions := fmt.Sprintf("Took number %d of pool %s away from %s", r.Number, r.Pool, cli.Printable(fmt.Sprint(cli.Cell(r.Holder)))), ""
	if r.Released == "reservation" {
		done = fmt.Sprintf("Released number %d of pool %s: %s", r.Number, r.Pool, cli.Printable(fmt.Sprint(cli.Cell(r.Note))))
		sessions = "Sessions that have used the number can still use it until they end.\n"
	}
	return c.Print(r, "%s. Programs can claim it after its high-water mark, %s.\n%s", done, r.Mark.Stamp(), sessions)
}
