package dbhealth

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var settingUnreserved = Rule{
	ID: "setting-unreserved", Area: "setting",
	Means:  "the setting `sortkey.node` is not a node number, is out of range, or is not reserved in any pool",
	Remedy: "reserve the number with `sortkey nodes reserve`, or set a reserved one",
	needs:  []string{mayList},
	check:  checkReservation,
}

// nodeNumber matches the values of the setting that the next_ functions accept.
var nodeNumber = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})$`)

func checkReservation(ctx context.Context, e *Examination) error {
	const subject = "reservation"
	s, err := e.setting(ctx)
	if err != nil || s.session == "" {
		return err
	}
	if !nodeNumber.MatchString(s.session) {
		e.add(Warning, "", subject, fmt.Sprintf("%q is not a node number", s.session), s.alter+"N, and reconnect")
		return nil
	}
	reservations, err := e.reservations(ctx)
	if err != nil {
		return err
	}
	var reserved, outOfRange []string
	for _, r := range reservations {
		switch strconv.Itoa(r.setting) {
		case s.session:
			reserved = append(reserved, fmt.Sprintf("%s (%s)", r.pool, r.note))
		case "-1":
			if strconv.Itoa(r.number) == s.session {
				outOfRange = append(outOfRange, r.rangeText())
			}
		}
	}
	if len(s.session) > 5 || s.session > "65535" && len(s.session) == 5 {
		outOfRange = append(outOfRange, "no format has this number")
	}
	switch {
	case len(outOfRange) > 0:
		e.add(Problem, "", subject, fmt.Sprintf("number %s is out of range: %s", s.session, strings.Join(outOfRange, ", ")), s.alter+"N with a number in range, and reconnect")
	case len(reserved) == 0:
		e.add(Warning, "", subject, "number "+s.session+" is not reserved in any pool: a program could claim it",
			fmt.Sprintf("run sortkey nodes reserve POOL %s, with the pool of each format that defaults use", s.session))
	default:
		e.add(OK, "", subject, "number "+s.session+" is reserved in "+strings.Join(reserved, ", "), "")
	}
	return nil
}
