/** Counters, gauges and histograms in Prometheus' text format. Labels have few values: beyond the first hundred they are `other`. */

type Labels = Readonly<Record<string, string>>

const mostValues = 100
const buckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]

export interface Family {
  add(labels: Labels, value?: number): void
  text(): string
}

function createSeries<T>(make: () => T) {
  const series = new Map<string, { labels: Labels; value: T }>()
  const known = new Map<string, Set<string>>()

  function bounded(labels: Labels): Labels {
    const entries = Object.entries(labels).map(([name, value]) => {
      const values = known.get(name) ?? new Set<string>()
      known.set(name, values)
      if (!values.has(value) && values.size >= mostValues) return [name, 'other']
      values.add(value)
      return [name, value]
    })
    return Object.fromEntries(entries) as Labels
  }

  return {
    all: () => series.values(),
    at(given: Labels): { labels: Labels; value: T } {
      const counted = series.get(JSON.stringify(given))
      if (counted !== undefined) return counted
      const labels = bounded(given)
      const key = JSON.stringify(labels)
      const found = series.get(key) ?? { labels, value: make() }
      series.set(key, found)
      return found
    },
  }
}

export function createCounter(name: string, help: string, type: 'counter' | 'gauge' = 'counter'): Family {
  const series = createSeries(() => 0)
  return {
    add(labels, value = 1) {
      series.at(labels).value += value
    },
    text: () =>
      head(name, help, type) + [...series.all()].map(({ labels, value }) => line(name, labels, value)).join(''),
  }
}

/** Of seconds. */
export function createHistogram(name: string, help: string): Family {
  const series = createSeries(() => ({ counts: buckets.map(() => 0), sum: 0, count: 0 }))
  return {
    add(labels, seconds = 0) {
      const { value } = series.at(labels)
      value.sum += seconds
      value.count++
      for (const [i, bound] of buckets.entries()) if (seconds <= bound) value.counts[i]!++
    },
    text() {
      const lines = [...series.all()].flatMap(({ labels, value: { counts, sum, count } }) => [
        ...buckets.map((bound, i) => line(`${name}_bucket`, { ...labels, le: String(bound) }, counts[i]!)),
        line(`${name}_bucket`, { ...labels, le: '+Inf' }, count),
        line(`${name}_sum`, labels, sum),
        line(`${name}_count`, labels, count),
      ])
      return head(name, help, 'histogram') + lines.join('')
    },
  }
}

export function gauge(name: string, help: string, value: number): string {
  return `${head(name, help, 'gauge')}${line(name, {}, value)}`
}

function head(name: string, help: string, type: string): string {
  return `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${name} ${type}\n`
}

function line(name: string, labels: Labels, value: number): string {
  const pairs = Object.entries(labels).map(([key, text]) => `${key}="${escaped(text)}"`)
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}\n`
}

function escaped(text: string): string {
  return text
    .replaceAll('\\', '\\\\')
    .replaceAll('"', String.raw`\"`)
    .replaceAll('\n', String.raw`\n`)
}
