/** `run://<id>`, `run://<id>/files/<n>` and `thread://<id>`: what the caller may see of runs, as resources of MCP. */
import type { RequestContext } from '../handler-context.ts'

export interface Resource {
  uri: string
  name: string
  title?: string
  description?: string
  mimeType: string
}

export type ResourceContents = { uri: string; mimeType: string } & ({ text: string } | { blob: string })

/** The newest 50 runs that are the caller's own, and from `cursor` on the next 50. Undefined: no such cursor (-32602). */
export declare function listResources(
  context: Pick<RequestContext, 'runtime' | 'principal'>,
  cursor?: unknown,
): Promise<{ resources: Resource[]; nextCursor?: string } | undefined>

export declare function resourceTemplates(): {
  uriTemplate: string
  name: string
  description: string
  mimeType?: string
}[]

/** Undefined: unknown or not the caller's to see (-32602, one text for all). */
export declare function readResource(
  context: Pick<RequestContext, 'runtime' | 'principal'>,
  uri: unknown,
): Promise<ResourceContents[] | undefined>
