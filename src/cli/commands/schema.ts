/** `millrace schema`: the JSON Schema of agent files or of test cases. */
import type { Command } from 'commander'
import type { CommandContext } from '../context.ts'
import { examples } from './options.ts'

export function addSchemaCommand(context: CommandContext, program: Command): void {
  program
    .command('schema')
    .summary('Print the JSON Schema of agent files')
    .description("Print the JSON Schema of agent files, including the tools and models that the folder's config adds.")
    .argument('[dir]', 'Folder of YAML agents', 'agents')
    .option('--tests', 'Print the JSON Schema of files of test cases')
    .addHelpText(
      'after',
      examples(
        'millrace schema > agents/millrace.schema.json',
        'millrace schema --tests > tests/millrace-tests.schema.json',
      ),
    )
    .action((dir: string, flags: { tests?: boolean }) => printSchema(context, dir, flags))
}

async function printSchema(
  context: CommandContext,
  dir: string,
  { tests = false }: { tests?: boolean },
): Promise<void> {
  context.stdout.write(
    tests ? await testSchema() : await (await import('../editor-schema.ts')).editorSchema(context, dir),
  )
}

async function testSchema(): Promise<string> {
  const { caseJsonSchema } = await import('../../regress/case-json-schema.ts')
  return `${JSON.stringify(caseJsonSchema(), null, 2)}\n`
}
