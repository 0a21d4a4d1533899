import { editorSchema } from '../editor-schema.ts'

export async function schemaCommand(dir: string): Promise<void> {
  process.stdout.write(await editorSchema(dir))
}
