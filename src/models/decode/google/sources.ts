/** Where an answer comes from: searches, images, files and maps, each named once. */
import type { LanguageModelV4Source } from '@ai-sdk/provider'
import type { LateSet } from '../../../fold/late-map.ts'
import type { Grounding } from './chunk-schema.ts'

type GroundingChunk = NonNullable<Grounding['groundingChunks']>[number]
type Found = LanguageModelV4Source & { key: string }

export interface SourceOptions {
  generateId(): string
  emit(source: LanguageModelV4Source): void
  /** Keys of the sources that have been emitted. */
  known: LateSet<string>
}

export function emitSources(grounding: Grounding | null | undefined, options: SourceOptions): void {
  const { generateId, emit, known } = options
  for (const chunk of grounding?.groundingChunks ?? []) {
    const found = sourceOf(chunk, generateId)
    if (found === undefined || known.has(found.key)) continue
    const { key, ...source } = found
    known.add(key)
    emit(source)
  }
}

/** Takes an id for each source, as the package does, even for one that is known. */
function sourceOf({ web, image, retrievedContext, maps }: GroundingChunk, generateId: () => string): Found | undefined {
  if (web) return linkTo(web.uri, web.title, generateId)
  if (image) return linkTo(image.sourceUri, image.title, generateId)
  if (retrievedContext) {
    const { uri, fileSearchStore } = retrievedContext
    if (uri && (uri.startsWith('http://') || uri.startsWith('https://'))) {
      return linkTo(uri, retrievedContext.title, generateId)
    }
    const title = retrievedContext.title ?? 'Unknown Document'
    if (uri) return { ...documentAt(uri, mediaTypeOf(uri), title, generateId), key: JSON.stringify(['document', uri]) }
    if (!fileSearchStore) return undefined
    const key = JSON.stringify(['file-search', fileSearchStore, title])
    return { ...documentAt(fileSearchStore, unknownType, title, generateId), key }
  }
  return maps?.uri ? linkTo(maps.uri, maps.title, generateId) : undefined
}

function linkTo(url: string, title: string | null | undefined, generateId: () => string): Found {
  const key = JSON.stringify(['url', url])
  return { type: 'source', sourceType: 'url', id: generateId(), url, title: title ?? undefined, key }
}

function documentAt(path: string, mediaType: string, title: string, generateId: () => string): LanguageModelV4Source {
  const filename = path.split('/').pop()
  return { type: 'source', sourceType: 'document', id: generateId(), mediaType, title, filename }
}

const unknownType = 'application/octet-stream'
const mediaTypes: [RegExp, string][] = [
  [/\.pdf$/, 'application/pdf'],
  [/\.txt$/, 'text/plain'],
  [/\.docx$/, 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'],
  [/\.doc$/, 'application/msword'],
  [/\.(md|markdown)$/, 'text/markdown'],
]

function mediaTypeOf(uri: string): string {
  return mediaTypes.find(([ending]) => ending.test(uri))?.[1] ?? unknownType
}
