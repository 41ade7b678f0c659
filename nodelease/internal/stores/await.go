package stores

import "context"

// Await calls f in a goroutine, for clients and file systems that ignore contexts. f calls
// finish with its result. finish reports whether the caller of Await gets it, which it doesn't
// once the context has ended. The caller then gets the error
// that noAnswer makes of the context's.
func Await[T any](ctx context.Context, noAnswer func(ended error) error, f func(finish func(T, error) bool)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer) // unbuffered: an answer is either received or late
	go f(func(value T, err error) bool {
		select {
		case answers <- answer{value, err}:
			return true
		case <-ctx.Done():
			return false
		}
	})
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, noAnswer(ctx.Err())
	}
}
