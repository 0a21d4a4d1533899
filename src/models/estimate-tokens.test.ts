/** The estimate is never more than 15 % too low, measured with a tokenizer on seven kinds of text. */
import { readFileSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { countTokens as o200k } from 'gpt-tokenizer/encoding/o200k_base'
import { countTokens as cl100k } from 'gpt-tokenizer/encoding/cl100k_base'
import { describe, expect, test } from 'vitest'
import type { Message } from '../part/message.ts'
import { estimateMessages, estimateText, estimateTools } from './estimate-tokens.ts'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

const row = (i: number) => ({
  id: `ord_${(i * 7919 + 104_729).toString(36)}`,
  customer: {
    name: `Customer ${i}`,
    email: `c${i}@example.com`,
    since: `20${10 + (i % 15)}-0${1 + (i % 9)}-1${i % 10}`,
  },
  items: [{ sku: `SKU-${i * 31}`, count: i % 7, price: i * 1.37 }],
  shipped: i % 2 === 0,
})
const logLine = (i: number) =>
  `2026-11-0${1 + (i % 9)}T0${i % 10}:1${i % 10}:${10 + (i % 50)}.${100 + ((i * 37) % 900)}Z INFO 10.0.${i % 255}.${(i * 7) % 255} "GET /api/orders/${i * 131}?page=${i}" 200 ${i * 97} ${(i * 0.731).toFixed(3)}`

const chinese =
  '长时间运行的助手会填满模型的上下文窗口。较早的内容必须用更少的话告诉模型，同时保留用户的第一个任务、最近的消息和所有未完成的工具调用。摘要是一条日志记录，任何进程都可以从它继续。如果摘要失败，最早的对话会被省略，运行会继续下去。订单号一二三四五六已于星期四发货，收件人住在上海市浦东新区。'
const japanese =
  '長い会話はモデルの文脈の窓をいっぱいにします。古い部分は短い言葉で伝えられ、最初の依頼と新しいメッセージはそのまま残ります。要約は記録の一つの項目であり、別のプロセスもそこから続けることができます。ご注文の商品は木曜日に発送されました。カスタマーサポートまでお問い合わせください。'
const korean =
  '긴 대화는 모델의 문맥 창을 가득 채웁니다. 오래된 부분은 더 적은 말로 전달되고 첫 번째 요청과 최근 메시지는 그대로 남습니다. 주문하신 상품은 목요일에 발송되었습니다.'
const russian =
  'Длинный разговор заполняет окно модели. Старая часть передаётся короче, а первое задание, новые сообщения и открытые вызовы инструментов остаются без изменений. Если сводку сделать нельзя, самые старые реплики опускаются, и работа продолжается. Ваш заказ отправлен в четверг.'
const german =
  'Ein langes Gespräch füllt das Fenster des Modells. Der ältere Teil wird kürzer erzählt, während die erste Aufgabe, die neuesten Nachrichten und offene Werkzeugaufrufe unverändert bleiben. Wenn die Zusammenfassung misslingt, werden die ältesten Beiträge ausgelassen. Ihre Bestellung wurde am Donnerstag verschickt.'

const corpora: Record<string, string> = {
  'prose: documentation in English': `${read('docs/conversations.md')}\n${read('docs/security.md')}`,
  'code: TypeScript': `${read('src/fold/tool-loop.ts')}\n${read('src/engine/runner.ts')}`,
  'JSON: records': JSON.stringify(Array.from({ length: 200 }, (_, i) => row(i))),
  'JSON: a lock file, with hashes': read('package-lock.json').slice(0, 60_000),
  'logs: times, addresses, numbers': Array.from({ length: 300 }, (_, i) => logLine(i)).join('\n'),
  'CJK: Chinese, Japanese, Korean': `${chinese}\n${japanese}\n${korean}`.repeat(10),
  'other languages: Russian, German': `${russian}\n${german}`.repeat(10),
  base64: randomBytes(30_000).toString('base64'),
}

describe.each([
  ['o200k', o200k],
  ['cl100k, which has fewer words of Asia', cl100k],
])('with %s', (name, count) => {
  const counted = Object.entries(corpora).filter(([kind]) => name === 'o200k' || !kind.startsWith('CJK'))
  test.each(counted)('%s', (_, text) => {
    const off = estimateText(text) / count(text) - 1
    expect(off, `${(off * 100).toFixed(1)} %`).toBeGreaterThan(-0.15)
    // A call is not made much earlier than it must be.
    expect(off, `${(off * 100).toFixed(1)} %`).toBeLessThan(0.9)
  })
})

test('mixed in one text, each part counts as what it is', () => {
  const mixed = Object.values(corpora)
    .map((text) => text.slice(0, 4000))
    .join('\n\n')
  expect(estimateText(mixed) / o200k(mixed)).toBeGreaterThan(0.85)
})

test('messages of all kinds, and tools', () => {
  const result = { orders: Array.from({ length: 50 }, (_, i) => row(i)) }
  const call = { type: 'tool-call' as const, toolCallId: 'c', toolName: 'orders', input: { page: 1, of: row(1) } }
  const messages: Message[] = [
    { role: 'user', content: corpora['prose: documentation in English']! },
    { role: 'assistant', content: [{ type: 'text', text: 'I look.' }, call] },
    {
      role: 'tool',
      content: [{ type: 'tool-result', toolCallId: 'c', toolName: 'orders', output: { type: 'json', value: result } }],
    },
  ]
  const words = [messages[0]!.content as string, 'I look.', JSON.stringify(call.input), JSON.stringify(result)]
  const real = words.reduce((sum, each) => sum + o200k(each), 0)
  expect(estimateMessages(messages) / real).toBeGreaterThan(0.85)
  const inputSchema = { type: 'object', properties: { page: { type: 'integer', description: 'Of the list, from 1.' } } }
  const tools = [{ name: 'orders', description: 'Lists the orders of a customer.', inputSchema }]
  expect(estimateTools(tools) / o200k(JSON.stringify(tools))).toBeGreaterThan(0.85)
})

test('an image counts as one, however long its data is, also in a result', () => {
  const data = 'A'.repeat(1_000_000)
  const file = { type: 'file' as const, mediaType: 'image/png', data }
  expect(estimateMessages([{ role: 'user', content: [file] }])).toBe(1604)
  const output = { type: 'json' as const, value: [{ type: 'image', mimeType: 'image/png', data }] }
  const tool: Message = { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c', toolName: 't', output }] }
  expect(estimateMessages([tool])).toBeLessThan(1700)
})

test('a long text costs little to estimate', () => {
  const text = 'word and {"json": 12} '.repeat(100_000)
  const begun = performance.now()
  estimateText(text)
  expect(performance.now() - begun).toBeLessThan(500)
})
