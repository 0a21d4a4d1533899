import { describe, expect, test } from 'vitest'
import { toJunit } from './junit.ts'
import type { CaseResult } from './run-case.ts'

const passed: CaseResult = {
  file: 'tests/a.yaml',
  line: 3,
  name: 'good',
  status: 'passed',
  failures: [],
  warnings: [],
  usage: { source: 'reported' },
  isLive: false,
  duration: 12,
}

interface Element {
  name: string
  attributes: Record<string, string>
  children: (Element | string)[]
}

const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"' }

function unescape(text: string): string {
  expect(text).not.toMatch(/[<>]|&(?!(?:amp|lt|gt|quot|#\d+);)/u)
  return text.replaceAll(/&(?:#(\d+)|(\w+));/gu, (_, code: string, name: string) =>
    code === undefined ? entities[name]! : String.fromCodePoint(Number(code)),
  )
}

/** A strict reader of the XML that a test report may have: elements, attributes, text. */
function parseXml(xml: string): Element {
  // What XML 1.0 allows.
  expect(xml).toMatch(/^[\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]*$/u)
  const root: Element = { name: '', attributes: {}, children: [] }
  const stack = [root]
  const token = /<\?xml [^?]*\?>|<\/(\w[\w-]*)>|<(\w[\w-]*)((?:\s+[\w-]+="[^"<]*")*)\s*(\/?)>|([^<]+)/uy
  while (token.lastIndex < xml.length) {
    const at = token.lastIndex
    const match = token.exec(xml)
    if (match === null) throw new Error(`not XML: ${xml.slice(at, at + 60)}`)
    const [, close, open, attributes = '', isEmpty, text] = match
    if (close !== undefined) expect(stack.pop()!.name).toBe(close)
    else if (open !== undefined) {
      const pairs = [...attributes.matchAll(/([\w-]+)="([^"]*)"/gu)].map(([, key, value]) => [key!, unescape(value!)])
      const element = { name: open, attributes: Object.fromEntries(pairs) as Record<string, string>, children: [] }
      stack.at(-1)!.children.push(element)
      if (isEmpty === '') stack.push(element)
    } else if (text?.trim()) stack.at(-1)!.children.push(unescape(text))
  }
  expect(stack).toHaveLength(1)
  return root.children.find((each) => typeof each === 'object')!
}

const elements = ({ children }: Element) => children.filter((each) => typeof each === 'object')

describe('toJunit', () => {
  test('a suite for each file, with counts, times and what failed', () => {
    const got = 'a < b & "c"\n\u0007]]>\uD800'
    const failed: CaseResult = {
      ...passed,
      name: 'says "no" & <b>',
      line: 9,
      model: 'openai:gpt-5',
      status: 'failed',
      failures: [{ what: 'text', message: 'the answer does not contain "<x>"\nat all', expected: '<x>', got }],
      warnings: ['the prompt has changed'],
    }
    const stopped: CaseResult = { ...passed, file: 'tests/b.yaml', name: 'late', status: 'stopped' }
    const root = parseXml(toJunit([passed, failed, stopped]))
    expect(root.name).toBe('testsuites')
    expect(root.attributes).toMatchObject({ tests: '3', failures: '1', skipped: '1', errors: '0', time: '0.036' })
    const [a, b] = elements(root)
    expect(a!.attributes).toEqual({
      name: 'tests/a.yaml',
      tests: '2',
      failures: '1',
      errors: '0',
      skipped: '0',
      time: '0.024',
    })
    expect(b!.attributes['name']).toBe('tests/b.yaml')
    const [good, bad] = elements(a!)
    expect(good).toEqual({
      name: 'testcase',
      attributes: { name: 'good', classname: 'tests/a.yaml', file: 'tests/a.yaml', line: '3', time: '0.012' },
      children: [],
    })
    expect(bad!.attributes['name']).toBe('says "no" & <b> (openai:gpt-5)')
    const [failure, told] = elements(bad!)
    expect(failure!.attributes).toEqual({ message: 'text: the answer does not contain "<x>"\nat all', type: 'text' })
    // What XML cannot have is replaced.
    expect(failure!.children[0]).toContain('  - <x>\n  + a < b & "c"\n  + \uFFFD]]>\uFFFD')
    expect(told).toMatchObject({ name: 'system-err', children: ['the prompt has changed'] })
    expect(elements(elements(b!)[0]!)[0]).toMatchObject({ name: 'skipped' })
  })

  test('no results are XML, too', () => {
    expect(parseXml(toJunit([]))).toMatchObject({ name: 'testsuites', children: [] })
  })
})
