/** Results as JUnit XML, which CI systems read: a suite for each file. */
import { describeFailure } from './describe-failure.ts'
import type { CaseResult } from './run-case.ts'

export function toJunit(results: readonly CaseResult[]): string {
  const suites = Map.groupBy(results, ({ file }) => file)
  const lines = ['<?xml version="1.0" encoding="UTF-8"?>', `<testsuites name="millrace test"${counts(results)}>`]
  for (const [file, cases] of suites) {
    lines.push(`  <testsuite name="${attribute(file)}"${counts(cases)}>`, ...cases.flatMap(toCase), '  </testsuite>')
  }
  return [...lines, '</testsuites>', ''].join('\n')
}

function counts(results: readonly CaseResult[]): string {
  const of = (status: CaseResult['status']) => results.filter((each) => each.status === status).length
  const time = seconds(results.reduce((sum, { duration }) => sum + duration, 0))
  return ` tests="${results.length}" failures="${of('failed')}" errors="0" skipped="${of('stopped')}" time="${time}"`
}

function toCase({ file, line, name, model, status, failures, warnings, duration }: CaseResult): string[] {
  const full = model === undefined ? name : `${name} (${model})`
  const head = `    <testcase name="${attribute(full)}" classname="${attribute(file)}" file="${attribute(file)}" line="${line}" time="${seconds(duration)}"`
  const inside = [
    ...failures.map((failure) => {
      const about = `message="${attribute(`${failure.what}: ${failure.message}`)}" type="${attribute(failure.what)}"`
      return `      <failure ${about}>${content(describeFailure(failure))}</failure>`
    }),
    ...(status === 'stopped' ? ['      <skipped message="stopped"/>'] : []),
    ...(warnings.length > 0 ? [`      <system-err>${content(warnings.join('\n'))}</system-err>`] : []),
  ]
  return inside.length === 0 ? [`${head}/>`] : [`${head}>`, ...inside, '    </testcase>']
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(3)
}

/** XML cannot have these at all, not even escaped. */
// oxlint-disable-next-line no-control-regex
const impossible = /[\u0000-\u0008\u000B\u000C\u000E-\u001F\uFFFE\uFFFF]/gu

function content(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(impossible, '\uFFFD')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('\r', '&#13;')
}

function attribute(text: string): string {
  return content(text).replaceAll('"', '&quot;').replaceAll('\n', '&#10;').replaceAll('\t', '&#9;')
}
