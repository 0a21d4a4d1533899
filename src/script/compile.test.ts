import { describe, expect, test } from 'vitest'
import { checkScript, compileScript } from './compile.ts'
import { defaultScriptLimits } from './sandbox.ts'
import { describeScriptError } from './script-error.ts'

const faultOf = (code: string) => {
  const error = checkScript(code)
  return error === undefined ? undefined : describeScriptError(error)
}

describe('checkScript', () => {
  test('has nothing to say of good code, and runs none of it', () => {
    const good = [
      '',
      'return input.rows.length',
      'const a = await tools.orders({ id: 1 })\nreturn a',
      'const a: number = 1\nreturn a as unknown as string',
      'type A<T> = { a: T }\nfunction f<T extends A<string>>(this: void, a: T): asserts a is T {}\nreturn f satisfies unknown',
      'abstract class B { declare x: string; abstract y(): void; private readonly z?: number }',
      'const { a, ...rest } = input ?? {}\nfor await (const each of []) if (each) continue\nreturn rest',
      '// a comment at the end',
      'return 1\n/* and one\nmore */',
      'globalThis.process.exit(1)',
      '\u2028return 1',
    ]
    for (const code of good) expect(faultOf(code), code).toBe(undefined)
  })

  const table: [code: string, fault: string | RegExp][] = [
    ['let x = ;', "SyntaxError at 1:9: Unexpected token ';'.\n1 | let x = ;"],
    ['const a = 1\n\n  const a = 2', /^SyntaxError at 3:9: Identifier 'a' has already been declared\./u],
    ['const a: string = 1\nlet b = foo(1 2)', /^SyntaxError at 2:15: Expected ','/u],
    ['const a: string = 1\n\tlet 日本 = 1; let x = ;', /^SyntaxError at 2:22: Expression expected\./u],
    ['foo(\n\n', 'SyntaxError at 1:5: The brackets do not match: something is not closed, or closed twice.\n1 | foo('],
    ['if (a) {\n  b()\n', /^SyntaxError at 2:6: The brackets do not match/u],
    ['return 1 }', /^SyntaxError at 1:11: The brackets do not match/u],
    ['}); evil(); (async () => {', /^SyntaxError: There is a \} too many/u],
    ['import fs from "node:fs"', /^SyntaxError at 1:1: Modules are not available in a script: call tools instead\./u],
    ['const a = 1\nexport default a', /^SyntaxError at 2:1: Modules are not available/u],
    ['export type A = string', /^SyntaxError at 1:1: Modules are not available/u],
    [
      'enum A { b }',
      /^SyntaxError at 1:1: TypeScript enum is not supported in strip-only mode\. Only types that can be erased/u,
    ],
    [
      '\n namespace A { export const b = 1 }',
      /^SyntaxError at 2:2: TypeScript namespace declaration.*Only types that can be erased/u,
    ],
    [
      'class A { constructor(private b: string) {} }',
      /^SyntaxError at 1:31: TypeScript parameter property.*Only types/u,
    ],
    ['return <any>a', /^SyntaxError at 1:\d+: The angle-bracket syntax.*Only types/u],
    ['"use strict"; x = 010', /^SyntaxError at 1:\d+: .*octal/iu],
    ['with (a) {}', /^SyntaxError at 1:1: /u],
    ['await = 1', /^SyntaxError at 1:\d+/u],
    ['break', /^SyntaxError at 1:\d+/u],
    ['return `a${1', /^SyntaxError at 1:\d+: /u],
    ['('.repeat(20_000), 'SyntaxError: The script nests too deeply.'],
    ['x'.repeat(70_000), 'Error: The code of the script is too large: 68.4 KB, and at most 64 KB are allowed.'],
  ]
  test.each(table)('%s', (code, expected) => {
    if (typeof expected === 'string') expect(faultOf(code)).toBe(expected)
    else expect(faultOf(code)).toMatch(expected)
  })

  test('strips nothing in the thread of the caller, whatever it is given', () => {
    for (const kind of ['(', '{a:', 'x=>', 'a?.', 'if(1)']) {
      const code = `interface A { b: string }\nlet x = ${kind.repeat(Math.floor(60_000 / kind.length))}1`
      expect(checkScript(code)?.code, kind).toBe('bad-script')
    }
    expect(checkScript('let x: number = 1')).toBe(undefined)
    expect(compileScript('let x: number = 1')).toHaveProperty('js')
  })

  test('gives up on a text that keeps Node’s stripper busy', { timeout: 120_000 }, () => {
    const code = `type A = string\nlet x = ${'a ? (b) : c => '.repeat(40)}1`
    expect(describeScriptError(checkScript(code)!)).toMatch(/types of the script take too long/u)
  })

  test('the limit may be another', () => {
    expect(checkScript('return 1', { ...defaultScriptLimits, code: 4 })?.code).toBe('script-too-large')
  })
})

describe('compileScript', () => {
  test('keeps each place, with types or without', () => {
    const code = 'interface A { b: string }\nconst a: A = { b: "1" }\nreturn a!.b'
    const compiled = compileScript(code)
    if (!('js' in compiled)) throw new Error('it does not compile')
    const lines = compiled.js.split('\n')
    expect(lines.slice(1, -1).map((line) => line.length)).toEqual(code.split('\n').map((line) => line.length))
    expect(lines[3]?.indexOf('.b')).toBe(9)
    expect(compileScript('return 1')).toEqual({ js: '"use strict";(async()=>{\nreturn 1\n})' })
  })

  test('Node’s warning about the stripper is not printed, and others are', () => {
    const { emitWarning } = process
    compileScript('let a: number = 1')
    expect(process.emitWarning).toBe(emitWarning)
  })
})
