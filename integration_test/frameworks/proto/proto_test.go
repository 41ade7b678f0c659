// Package proto tests the recipe for protocol buffers.
package proto

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"

	"github.com/sortkey/sortkey/integration_test/internal/gentest"
)

// TestProto generates package pb from order.proto with protoc-gen-go, and runs the tests in
// testdata with it.
func TestProto(t *testing.T) {
	c := protocompile.Compiler{Resolver: &protocompile.SourceResolver{ImportPaths: []string{"../../../examples/frameworks/web"}}}
	files, err := c.Compile(t.Context(), "order.proto")
	must(t, err)
	request, err := proto.Marshal(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{"order.proto"},
		Parameter:      proto.String("Morder.proto=github.com/sortkey/sortkey/integration_test/frameworks/proto/testdata/pb"),
		ProtoFile:      []*descriptorpb.FileDescriptorProto{protoutil.ProtoFromFileDescriptor(files[0])},
	})
	must(t, err)
	plugin := exec.CommandContext(t.Context(), "go", "run", "google.golang.org/protobuf/cmd/protoc-gen-go")
	plugin.Stdin, plugin.Stderr = bytes.NewReader(request), t.Output()
	out, err := plugin.Output()
	must(t, err)
	var response pluginpb.CodeGeneratorResponse
	must(t, proto.Unmarshal(out, &response))
	if response.GetError() != "" || len(response.File) != 1 {
		t.Fatalf("expected one file, got %v", &response)
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "order.pb.go"), []byte(response.File[0].GetContent()), 0o600))
	gentest.Run(t, dir, "pb")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
