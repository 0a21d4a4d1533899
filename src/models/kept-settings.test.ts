import { expect, test } from 'vitest'
import type { LanguageModelV4 } from '@ai-sdk/provider'
import { keepSettings } from './kept-settings.ts'
import { loadModel, type EndpointProtocol } from './providers.ts'

const modelWith = (config: unknown) => ({ config }) as unknown as LanguageModelV4

test('headers are made once; an address as often as it is another one', () => {
  const made: unknown[] = []
  const config = {
    headers: () => {
      made.push('headers')
      return { a: 'b' }
    },
    url: ({ path, modelId }: { path: string; modelId?: string }) => {
      made.push(path)
      return `http://here${path}?${modelId}`
    },
  }
  keepSettings(modelWith(config))
  expect([config.headers(), config.headers()]).toEqual([{ a: 'b' }, { a: 'b' }])
  const asked = [
    { path: '/x', modelId: 'm' },
    { path: '/x', modelId: 'm' },
    { path: '/y', modelId: 'm' },
    { path: '/y', modelId: 'n' },
    { path: '/y' },
  ]
  expect(asked.map((place) => config.url(place))).toEqual([
    'http://here/x?m',
    'http://here/x?m',
    'http://here/y?m',
    'http://here/y?n',
    'http://here/y?undefined',
  ])
  expect(made).toEqual(['headers', '/x', '/y', '/y', '/y'])
})

test('the name that a package cuts from that of its provider is cut once', () => {
  let cuts = 0
  class Model {
    readonly config = { provider: 'my-server.chat' }
    get providerOptionsName(): string {
      cuts++
      return this.config.provider.split('.')[0]!
    }
  }
  const model = new Model()
  keepSettings(model as unknown as LanguageModelV4)
  expect([model.providerOptionsName, model.providerOptionsName]).toEqual(['my-server', 'my-server'])
  expect(cuts).toBe(1)
})

test.each([undefined, {}, { headers: 'text', url: 'text' }])(
  'a model with the settings %j stays as it is',
  (config) => {
    const model = modelWith(config)
    keepSettings(model)
    expect(model).toEqual({ config })
  },
)

test.each<EndpointProtocol>(['openai-chat', 'openai-responses', 'anthropic', 'google'])(
  'the package for %s sends the same address and headers with each request',
  async (protocol) => {
    const sent: [string, unknown][] = []
    const { fetch } = globalThis
    globalThis.fetch = async (input, init) => {
      sent.push([input instanceof Request ? input.url : String(input), Object.fromEntries(new Headers(init?.headers))])
      throw new Error('no network')
    }
    try {
      const given = { provider: 'p', modelId: 'm', protocol, apiKey: 'k', baseURL: 'http://127.0.0.1:1/v1' }
      const [kept, own] = [await loadModel(given), await loadModel({ ...given, decoder: 'package' })]
      const ask = (model: LanguageModelV4, abc: string) =>
        model
          .doGenerate({ prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }], headers: { abc } })
          .then(undefined, () => undefined)
      for (const model of [own, kept, kept]) await ask(model, '1')
      await ask(kept, '2')
      expect(sent[1]).toEqual(sent[0])
      expect(sent[2]).toEqual(sent[0])
      expect(sent[3]).toEqual([sent[0]![0], { ...(sent[0]![1] as object), abc: '2' }])
      expect(JSON.stringify(sent[0])).toMatch(/\bk\b/u)
    } finally {
      globalThis.fetch = fetch
    }
  },
)
