# With the command beside this file: CGO_ENABLED=0 GOOS=linux go build -o sortkey ./cmd/sortkey
FROM scratch
COPY sortkey /bin/sortkey
# For sslmode=verify-full, copy the certificate that sslrootcert in the URL names, too.
USER 65532
