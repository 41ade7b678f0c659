package pgxcodec_test

import "github.com/sortkey/sortkey/idtype"

// One ID of each type. None has a zero byte in the middle. None is small enough for the
// runtime to convert it to an interface without an allocation.
var (
	snowflake   = idtype.Snowflake(132271570944274432)
	snowflakeSI = idtype.SnowflakeSI(9007199254740991)
	uid60       = idtype.Must(idtype.ParseUID60("xinaS8QBh"))
	spread64    = idtype.Must(idtype.ParseSpread64("cb54ecf2840a0015")) // a negative bigint
	uuid7       = idtype.Must(idtype.ParseUUID("017f22e2-79b0-7cc3-98c4-dc0c0c07398f"))
	sno         = idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l"))
)
