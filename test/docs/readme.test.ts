/** What the documents show works as it stands there: TypeScript compiles, agents are valid, pasted lines answer. */
import { cpSync, existsSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { ran } from '../support/cli.ts'
import { documents, readDocument, snippetsIn } from './documents.ts'
import { createProject, root } from './readme-project.ts'

const readme = readDocument('README.md')

const project = createProject()
describe('README.md', () => {
  afterAll(() => rmSync(project, { recursive: true, force: true }))

  test('the README holds the two lines that a newcomer pastes', () => {
    for (const line of ['npm ci && npm start', 'npm ci && npm test']) {
      expect(readme.split('\n').filter((each) => each.startsWith(line))).toHaveLength(1)
    }
  })

  test('agents in the documents are valid, with the config that stands beside them', async () => {
    // Files of test cases have a test of their own, and so have the servers of MCP.
    const agents = snippetsIn('yaml').filter(
      ({ place, text }) => !/^cases:/mu.test(text) && !place.startsWith('docs/mcp.md'),
    )
    expect(agents.length).toBeGreaterThan(1)
    const dir = join(project, 'agents')
    // The documents call agents that ship.
    cpSync(join(root, 'agents'), dir, { recursive: true })
    agents.forEach(({ place, text }) => writeFileSync(join(dir, `${place.replaceAll(/\W/gu, '-')}.yaml`), text))
    const config = snippetsIn('ts').filter(({ text }) => text.startsWith('// agents/millrace.config.ts'))
    expect(config).toHaveLength(1)
    writeFileSync(join(dir, 'millrace.config.ts'), config[0]!.text)
    const { code, out } = await ran(['check', dir])
    expect([code, out]).toEqual([0, ''])
  })

  test('every command in the documents exists, with its options', async () => {
    const lines = snippetsIn('sh', '').flatMap(({ text }) => text.match(/^npx millrace .*$/gmu) ?? [])
    expect(lines.length).toBeGreaterThan(6)
    const commands = [...new Set(lines.map((line) => line.split(' ')[2]!))]
    const helps = new Map(
      await Promise.all(commands.map(async (command) => [command, await ran([command, '--help'])] as const)),
    )
    for (const line of lines) {
      const { code, out } = helps.get(line.split(' ')[2]!)!
      expect([line, code]).toEqual([line, 0])
      const options = line.replace(/#.*/u, '').match(/(?<= )--?[a-z][a-z-]*/gu) ?? []
      for (const option of options) expect(out, line).toMatch(new RegExp(`(^|[ ,])${option}\\b`, 'mu'))
    }
  })

  test('every link to a file finds it', () => {
    for (const document of documents) {
      for (const [, target] of readDocument(document)
        .replaceAll(/`[^`\n]*`/gu, '')
        .matchAll(/\]\((?!https?:)([^)#]+)\)/gu)) {
        expect(existsSync(resolve(root, dirname(document), target!)), `${document}: ${target}`).toBe(true)
      }
    }
  })

  /** The id that GitHub gives a heading. */
  function anchorOf(heading: string): string {
    const plain = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/gu, '$1')
    return plain
      .trim()
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
      .replaceAll(' ', '-')
  }

  test('every link to a heading finds it', () => {
    const prose = (document: string) => readDocument(document).replaceAll(/^```[^]*?^```$/gmu, '')
    const anchors = new Map(
      documents.map((document) => [
        resolve(root, document),
        new Set([...prose(document).matchAll(/^#+ (.*)$/gmu)].map(([, heading]) => anchorOf(heading!))),
      ]),
    )
    const links = documents.flatMap((document) =>
      [
        ...prose(document)
          .replaceAll(/`[^`\n]*`/gu, '')
          .matchAll(/\]\((?!https?:)([^)#]*\.md|)#([^)]+)\)/gu),
      ].map(([link, target, anchor]) => {
        const file = target === '' ? resolve(root, document) : resolve(root, dirname(document), target!)
        return { document, link, isFound: anchors.get(file)?.has(anchor!) === true }
      }),
    )
    expect(links.length).toBeGreaterThan(100)
    expect(links.filter(({ isFound }) => !isFound)).toEqual([])
  })
})
