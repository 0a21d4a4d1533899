import { afterEach, describe, expect, test, vi } from 'vitest'
import { textWire } from '../wire/text/text.ts'
import { uiWire } from '../wire/ui/ui.ts'
import { defaultKeepAliveMs, keepAliveOf } from './open-delivery.ts'

describe('keep-alive', () => {
  afterEach(() => vi.unstubAllGlobals())

  test('a keep-alive comes before Bun ends a silent response; plain text has none', () => {
    expect(defaultKeepAliveMs()).toBeLessThanOrEqual(8000)
    expect(keepAliveOf(textWire)).toEqual({ first: '', later: '' })
  })

  test('on Cloudflare it comes sooner, in plain text too: JSON is still JSON, and nothing is seen', () => {
    vi.stubGlobal('navigator', { userAgent: 'Cloudflare-Workers' })
    expect(defaultKeepAliveMs()).toBeLessThanOrEqual(2000)
    const { first, later } = keepAliveOf(textWire)
    expect(JSON.parse(`${first}{}`)).toEqual({})
    expect(later).toBe('\u200B')
    expect(keepAliveOf(uiWire).later).toBe(uiWire.keepAlive)
  })
})
