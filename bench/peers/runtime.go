// The steps of bench/runtime.cpp on goroutines and channels, on one thread; prints `name value` lines.
//
//	runtime [SCALE]
//
// A channel counts no unfinished items, so the queues do without task_done. A call inside a goroutine is a plain call,
// so there is no nested await to measure.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"sync"
	"time"
)

const (
	rounds      = 5
	parked      = 100_000
	otherTimers = 100_000
)

var scale = 1.0

func scaled(count int) int {
	times := int(float64(count) * scale)
	if times < 1 {
		return 1
	}
	return times
}

// timeEach gives the nanoseconds for each of `operations` that `run` performs.
func timeEach(operations int, run func()) float64 {
	var each []float64
	for round := 0; round < rounds; round++ {
		start := time.Now()
		run()
		each = append(each, float64(time.Since(start).Nanoseconds())/float64(operations))
	}
	sort.Float64s(each)
	return each[rounds/2]
}

func measureYield(tasks int) float64 {
	times := scaled(4_000_000) / tasks
	return timeEach(times*tasks, func() {
		var running sync.WaitGroup
		running.Add(tasks)
		for task := 0; task < tasks; task++ {
			go func() {
				for i := 0; i < times; i++ {
					runtime.Gosched()
				}
				running.Done()
			}()
		}
		running.Wait()
	})
}

func measureSpawn() float64 {
	times := scaled(1_000_000)
	results := make(chan int)
	return timeEach(times, func() {
		for i := 0; i < times; i++ {
			go func() { results <- 1 }()
			<-results
		}
	})
}

func measureQueue(size, pairs int) float64 {
	items := scaled(1_000_000) / pairs
	return timeEach(items*pairs, func() {
		queue := make(chan int, size)
		var running sync.WaitGroup
		running.Add(2 * pairs)
		for pair := 0; pair < pairs; pair++ {
			go func() {
				for i := 0; i < items; i++ {
					queue <- i
				}
				running.Done()
			}()
			go func() {
				for i := 0; i < items; i++ {
					<-queue
				}
				running.Done()
			}()
		}
		running.Wait()
	})
}

func spread(i int) time.Duration {
	return time.Duration(60_000+i*7919%120_000) * time.Millisecond
}

func measureTimers() float64 {
	times := scaled(1_000_000)
	others := make([]*time.Timer, otherTimers)
	for i := range others {
		others[i] = time.AfterFunc(spread(i), func() {})
	}
	each := timeEach(times, func() {
		for i := 0; i < times; i++ {
			time.AfterFunc(spread(i), func() {}).Stop()
		}
	})
	for _, timer := range others {
		timer.Stop()
	}
	return each
}

func residentBytes() float64 {
	statm, err := os.Open("/proc/self/statm")
	if err != nil {
		panic(err)
	}
	defer statm.Close()
	var all, resident int
	if _, err := fmt.Fscan(statm, &all, &resident); err != nil {
		panic(err)
	}
	return float64(resident * os.Getpagesize())
}

func measureMemory() float64 {
	event := make(chan struct{})
	before := residentBytes()
	for i := 0; i < parked; i++ {
		go func() { <-event }()
	}
	runtime.Gosched()
	after := residentBytes()
	close(event)
	return (after - before) / parked
}

func main() {
	runtime.GOMAXPROCS(1)
	if len(os.Args) > 1 {
		parsed, err := strconv.ParseFloat(os.Args[1], 64)
		if err != nil {
			panic(err)
		}
		scale = parsed
	}
	show := func(name string, value float64) { fmt.Printf("%s %.2f\n", name, value) }
	show("memory of a parked task, 100,000 parked", measureMemory())
	show("yield, 1 task", measureYield(1))
	show("yield, 1000 tasks", measureYield(1000))
	show("spawn and join", measureSpawn())
	show("Queue(1024) 1 to 1, with task_done", measureQueue(1024, 1))
	show("Queue(1) 1 to 1", measureQueue(1, 1))
	show("Queue(1024) 100 to 100", measureQueue(1024, 100))
	show("timers arm and cancel, 100,000 armed", measureTimers())
}
