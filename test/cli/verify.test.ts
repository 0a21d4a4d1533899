/** `verify`: files and runs against the grammar; what has not ended is told, not blamed. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { folder, ran } from '../support/cli.ts'

const yaml = `workflow:
  - { id: answer, type: llm, config: { model: "demo:assistant", stream: true } }
`

async function recording(cwd: string) {
  return (await ran(['run', 'a', '-m', 'Hi', '--format', 'parts', '--data', 'none'], { cwd })).out
}

describe('millrace verify', () => {
  test('verify reads NDJSON files and names what is wrong with them', async () => {
    const cwd = folder({ 'agents/a.yaml': yaml })
    const out = await recording(cwd)
    const lines = out.trim().split('\n')
    const check = async (text: string) => {
      writeFileSync(join(cwd, 'run.ndjson'), text)
      return ran(['verify', 'run.ndjson'], { cwd })
    }
    expect(await check(out)).toMatchObject({ code: 0, out: '', err: expect.stringContaining('1 checked, 0 errors\n') })
    const faulty: [string, RegExp][] = [
      [lines.slice(0, -1).join('\n'), /run\.ndjson: .*run-end/],
      [lines.filter((line) => !line.includes('"text-end"')).join('\n'), /run\.ndjson: /],
      [`${lines.slice(0, 2).join('\n')}\n{"cut\n${lines.slice(2).join('\n')}`, /^run\.ndjson:3: /],
      ['', /run\.ndjson: no entries/],
    ]
    for (const [text, message] of faulty) {
      const { code, out: told } = await check(text)
      expect([code, told]).toEqual([1, expect.stringMatching(message)])
    }
  })

  test('five faults are enough; what is no recording at all is told what one looks like', async () => {
    const cwd = folder({ 'agents/a.yaml': yaml, 'README.md': '# A title\n\nSome words.\n'.repeat(500) })
    const readme = await ran(['verify', 'README.md'], { cwd })
    expect(readme.code).toBe(1)
    const told = readme.out.trimEnd().split('\n')
    expect(told.map((line) => line.slice(0, 12))).toEqual([
      ...[1, 3, 4, 6, 7].map((line) => `README.md:${line}:`),
      '… and more',
    ])
    expect(readme.err).toMatch(
      /^README\.md: 0 entries\nexpected .*\{"seq":1,.*--format parts.*\n1 checked, 5 errors and more\n$/,
    )

    // A hole in the middle of a long one puts every entry behind it out of place.
    const lines = (await recording(cwd)).trim().split('\n')
    expect(lines.length).toBeGreaterThan(15)
    writeFileSync(
      join(cwd, 'hole.ndjson'),
      lines
        .toSpliced(5, 1)
        .map((line) => line.replace('text-delta', 'text-start'))
        .join('\n'),
    )
    const hole = await ran(['verify', 'hole.ndjson'], { cwd })
    expect([hole.code, hole.out.trimEnd().split('\n').length, hole.out.endsWith('\n… and more\n')]).toEqual([
      1,
      6,
      true,
    ])
    expect(hole.err).not.toContain('expected')

    // Exactly five: there is no more.
    writeFileSync(join(cwd, 'five.ndjson'), `${'no\n'.repeat(5)}${lines.join('\n')}`)
    const five = await ran(['verify', 'five.ndjson'], { cwd })
    expect([five.code, five.out.includes('… and more')]).toEqual([1, false])
    expect(five.err).toContain('1 checked, 5 errors\n')
  })

  test('what is neither a file nor a run is said in one line, exit 2', async () => {
    const cwd = folder({ 'agents/a.yaml': yaml })
    await ran(['run', 'a', '-m', 'Hi'], { cwd })
    for (const [what, message] of [
      ['run.ndjson', 'There is no file run.ndjson.'],
      ['nowhere/run', 'There is no file nowhere/run.'],
      ['agents', 'agents is a folder. Pass a file.'],
      ['xyz', 'There is no run xyz. List runs with: millrace ps'],
    ]) {
      expect(await ran(['verify', what!], { cwd })).toEqual({ code: 2, out: '', err: `millrace: ${message}\n` })
    }
  })

  test('all is a word, not a folder; a run that cannot be read is a fault, and those behind it are checked', async () => {
    const cwd = folder({ 'agents/a.yaml': yaml, 'all/README.md': 'a folder of that name\n' })
    for (const message of ['one', 'two', 'three']) await ran(['run', 'a', '-m', message], { cwd })
    const rows = JSON.parse((await ran(['ps', '--json'], { cwd })).out) as { id: string }[]
    const [three, two, one] = rows.map(({ id }) => id)
    expect(await ran(['verify', 'all'], { cwd })).toMatchObject({
      code: 0,
      err: expect.stringMatching(/3 checked, 0 errors\n$/u),
    })
    const db = new DatabaseSync(join(cwd, '.millrace/millrace.db'))
    db.prepare(`UPDATE ticks SET entries = '{"seq":1,' WHERE run = ?`).run(two!)
    db.prepare(`UPDATE runs SET usage = 'none' WHERE id = ?`).run(three!)
    db.close()
    const { code, out, err } = await ran(['verify', 'all'], { cwd })
    expect(code).toBe(1)
    expect(out).toMatch(
      new RegExp(`^${three}: The column usage .* is not valid JSON\\.\n${two}: cannot be read: .*\n$`, 'u'),
    )
    expect(err).toContain(`${one}: `)
    expect(err).toMatch(/3 checked, 2 errors\n$/u)
    expect((await ran(['verify', two!], { cwd })).code).toBe(1)
    // Nor does the row hide the list.
    expect((await ran(['ps'], { cwd })).out).toContain(one)
    expect(await ran(['verify', './all'], { cwd })).toMatchObject({
      code: 2,
      err: expect.stringContaining('is a folder'),
    })
  })
})
