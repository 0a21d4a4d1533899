import type { CommandContext } from '../context.ts'
import { editorSchema } from '../editor-schema.ts'

export async function schemaCommand(
  context: CommandContext,
  dir: string,
  { tests = false }: { tests?: boolean },
): Promise<void> {
  context.stdout.write(tests ? await testSchema() : await editorSchema(context, dir))
}

async function testSchema(): Promise<string> {
  const { caseJsonSchema } = await import('../../regress/case-json-schema.ts')
  return `${JSON.stringify(caseJsonSchema(), null, 2)}\n`
}
