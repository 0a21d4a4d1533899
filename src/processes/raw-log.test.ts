import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openRawLog } from './node-processes.ts'

function dataFolder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-raw-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

describe('raw log', () => {
  test('what was written is there, in order; who writes much waits; a second attempt is appended', async () => {
    const data = dataFolder()
    const onLost = () => expect.unreachable()
    const first = await openRawLog(data, { run: 'a/b', step: 'main/code', onLost })
    expect(first.write(Buffer.from('one '))).toBeUndefined()
    const behind = first.write(Buffer.alloc(2_000_000, 'x'))
    expect(behind).toBeInstanceOf(Promise)
    await behind
    expect(first.write(Buffer.from(' two'))).toBeUndefined()
    await first.close()
    const second = await openRawLog(data, { run: 'a/b', step: 'main/code', onLost })
    void second.write(Buffer.from(' three'))
    await second.close()
    const text = readFileSync(join(data, 'runs/a%2Fb.main%2Fcode.raw'), 'utf8')
    expect(text).toBe(`one ${'x'.repeat(2_000_000)} two three`)
  })

  test.skipIf(!existsSync('/dev/full'))('a full disk is told once, and keeps nobody waiting', async () => {
    const data = dataFolder()
    mkdirSync(join(data, 'runs'))
    symlinkSync('/dev/full', join(data, 'runs/r.s.raw'))
    const told: string[] = []
    const log = await openRawLog(data, { run: 'r', step: 's', onLost: (why) => told.push(why) })
    await log.write(Buffer.alloc(2_000_000))
    await log.write(Buffer.alloc(2_000_000))
    await log.close()
    expect(told).toEqual([expect.stringContaining('ENOSPC')])
  })
})
