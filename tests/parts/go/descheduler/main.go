// Times one pass of the descheduler of Kubernetes: LowNodeUtilization over a cluster whose objects are in its informers already.
// Nodes are full and empty in turn, as in tests/benchmarks/descheduler.py. It writes a line of JSON.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	"sigs.k8s.io/descheduler/pkg/api"
	"sigs.k8s.io/descheduler/pkg/descheduler/evictions"
	"sigs.k8s.io/descheduler/pkg/framework/plugins/defaultevictor"
	"sigs.k8s.io/descheduler/pkg/framework/plugins/nodeutilization"
	frameworktesting "sigs.k8s.io/descheduler/pkg/framework/testing"
	frameworktypes "sigs.k8s.io/descheduler/pkg/framework/types"
)

const version = "0.35.1"

func main() {
	nodes := flag.Int("nodes", 5000, "nodes")
	full := flag.Int("full", 30, "pods on nodes that are full")
	empty := flag.Int("empty", 10, "pods on nodes that are empty")
	most := flag.Uint("most", 100, "pods that go at most")
	asked := flag.Bool("version", false, "say the version")
	flag.Parse()
	if *asked {
		fmt.Println(version)
		return
	}
	klog.SetOutput(os.Stderr)
	klog.LogToStderr(false)
	if err := run(*nodes, *full, *empty, *most); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(count, full, empty int, most uint) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var objects []runtime.Object
	var nodes []*v1.Node
	pods := 0
	for at := range count {
		node := nodeOf(at)
		nodes = append(nodes, node)
		objects = append(objects, node)
		there := full
		if at%2 == 1 {
			there = empty
		}
		for one := range there {
			objects = append(objects, podOf(node.Name, at, one))
			pods++
		}
	}
	client := fake.NewSimpleClientset(objects...)
	limit := most
	handle, evictor, err := frameworktesting.InitFrameworkHandle(
		ctx, client, evictions.NewOptions().WithMaxPodsToEvictTotal(&limit), defaultevictor.DefaultEvictorArgs{NodeFit: true}, nil)
	if err != nil {
		return err
	}
	plugin, err := nodeutilization.NewLowNodeUtilization(ctx, &nodeutilization.LowNodeUtilizationArgs{
		Thresholds:       api.ResourceThresholds{v1.ResourceCPU: 40},
		TargetThresholds: api.ResourceThresholds{v1.ResourceCPU: 70},
	}, handle)
	if err != nil {
		return err
	}
	began, used := time.Now(), cpu()
	status := plugin.(frameworktypes.BalancePlugin).Balance(ctx, nodes)
	took, spent := time.Since(began).Seconds(), cpu()-used
	if status != nil && status.Err != nil {
		return status.Err
	}
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"nodes": count, "pods": pods, "evicted": evictor.TotalEvicted(),
		"seconds": took, "cpu": spent, "peak": usage.Maxrss * 1024,
	})
}

func cpu() float64 {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return float64(usage.Utime.Sec+usage.Stime.Sec) + float64(usage.Utime.Usec+usage.Stime.Usec)/1e6
}

func nodeOf(at int) *v1.Node {
	amounts := v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("32"), v1.ResourceMemory: resource.MustParse("128Gi"), v1.ResourcePods: resource.MustParse("110"),
	}
	name := fmt.Sprintf("node-%05d", at)
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}},
		Status: v1.NodeStatus{
			Capacity: amounts, Allocatable: amounts,
			Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}},
		},
	}
}

func podOf(node string, at, one int) *v1.Pod {
	name, truth, priority := fmt.Sprintf("pod-%05d-%02d", at, one), true, int32(9500)
	request := v1.ResourceList{v1.ResourceCPU: resource.MustParse("900m"), v1.ResourceMemory: resource.MustParse("1Gi")}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "default", UID: types.UID(name), Labels: map[string]string{"app": fmt.Sprintf("app-%d", one)},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web", Controller: &truth},
			},
		},
		Spec: v1.PodSpec{
			NodeName: node, Priority: &priority,
			Containers: []v1.Container{{Name: "main", Image: "i", Resources: v1.ResourceRequirements{Requests: request}}},
		},
		Status: v1.PodStatus{Phase: v1.PodRunning, Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}},
	}
}
