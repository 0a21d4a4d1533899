/** The Markdown that users read, taken apart: its code blocks by language. */
import { readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'

export interface Snippet {
  /** `README.md:12` */
  place: string
  language: string
  text: string
}

const root = resolve(import.meta.dirname, '../..')
const inFolder = (folder: string) =>
  readdirSync(resolve(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `${folder}/${name}`)

export const documents = [
  'README.md',
  'CONTRIBUTING.md',
  'AGENTS.md',
  'CHANGELOG.md',
  ...['docs', 'decisions', 'examples'].flatMap(inFolder),
]

export function readDocument(document: string): string {
  return readFileSync(resolve(root, document), 'utf8')
}

export const snippets: Snippet[] = documents.flatMap((document) => {
  const text = readDocument(document)
  return [...text.matchAll(/^```(\w*)\n([^]*?)^```$/gmu)].map(({ 1: language, 2: body, index }) => ({
    place: `${document}:${text.slice(0, index).split('\n').length}`,
    language: language!,
    text: body!,
  }))
})

export function snippetsIn(...languages: string[]): Snippet[] {
  return snippets.filter(({ language }) => languages.includes(language))
}
