import { editorSchema } from '../editor-schema.ts'

export async function schemaCommand(dir: string, { tests = false }: { tests?: boolean }): Promise<void> {
  process.stdout.write(tests ? await testSchema() : await editorSchema(dir))
}

async function testSchema(): Promise<string> {
  const { caseJsonSchema } = await import('../../regress/case-json-schema.ts')
  return `${JSON.stringify(caseJsonSchema(), null, 2)}\n`
}
