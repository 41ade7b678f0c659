package web

import "log/slog"

// Log writes a line about an order.
func Log(l *slog.Logger, o Order) {
	l.Info("order replaced", "order", o.ID, "customer", o.CustomerID, "replaces", o.ReplacesID)
}
