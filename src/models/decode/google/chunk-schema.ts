/**
 * The chunks of Google's generate-content stream, as `@ai-sdk/google` accepts them. A copy of its schema, which it does not export
 * (Apache-2.0: see NOTICE): the order of the choices and of the fields is part of the text of its errors. The tests compare both.
 */
import { z } from 'zod'
import type { Checked } from '../read-json.ts'

const text = z.string()
const maybeText = text.nullish()
const maybeNumber = z.number().nullish()
const maybeFlag = z.boolean().nullish()
const texts = z.array(text).nullish()
const numbers = z.array(z.number()).nullish()

const grounding = z.object({
  webSearchQueries: texts,
  imageSearchQueries: texts,
  retrievalQueries: texts,
  searchEntryPoint: z.object({ renderedContent: text }).nullish(),
  groundingChunks: z
    .array(
      z.object({
        web: z.object({ uri: text, title: maybeText }).nullish(),
        image: z.object({ sourceUri: text, imageUri: text, title: maybeText, domain: maybeText }).nullish(),
        retrievedContext: z
          .object({
            uri: maybeText,
            title: maybeText,
            text: maybeText,
            fileSearchStore: maybeText,
            customMetadata: z
              .array(
                z.object({
                  key: text,
                  stringValue: maybeText,
                  numericValue: maybeNumber,
                  stringListValue: z.object({ values: texts }).nullish(),
                }),
              )
              .nullish(),
          })
          .nullish(),
        maps: z.object({ uri: maybeText, title: maybeText, text: maybeText, placeId: maybeText }).nullish(),
      }),
    )
    .nullish(),
  groundingSupports: z
    .array(
      z.object({
        segment: z.object({ startIndex: maybeNumber, endIndex: maybeNumber, text: maybeText }).nullish(),
        segment_text: maybeText,
        groundingChunkIndices: numbers,
        supportChunkIndices: numbers,
        confidenceScores: numbers,
        confidenceScore: numbers,
      }),
    )
    .nullish(),
  retrievalMetadata: z.union([z.object({ webDynamicRetrievalScore: z.number() }), z.object({})]).nullish(),
})

const partialArg = z.object({
  jsonPath: text,
  stringValue: maybeText,
  numberValue: maybeNumber,
  boolValue: maybeFlag,
  nullValue: z.unknown().nullish(),
  willContinue: maybeFlag,
})
export type PartialArg = z.infer<typeof partialArg>

const part = z.union([
  z.object({
    functionCall: z.object({
      id: maybeText,
      name: maybeText,
      args: z.unknown().nullish(),
      partialArgs: z.array(partialArg).nullish(),
      willContinue: maybeFlag,
    }),
    thoughtSignature: maybeText,
  }),
  z.object({
    inlineData: z.object({ mimeType: text, data: text }),
    thought: maybeFlag,
    thoughtSignature: maybeText,
  }),
  z.object({
    toolCall: z.object({ toolType: text, args: z.unknown().nullish(), id: text }),
    thoughtSignature: maybeText,
  }),
  z.object({
    toolResponse: z.object({ toolType: text, response: z.unknown().nullish(), id: text }),
    thoughtSignature: maybeText,
  }),
  z.object({
    executableCode: z.object({ language: text, code: text }).nullish(),
    codeExecutionResult: z.object({ outcome: text, output: maybeText }).nullish(),
    text: maybeText,
    thought: maybeFlag,
    thoughtSignature: maybeText,
  }),
])

const safetyRatings = z
  .array(
    z.object({
      category: maybeText,
      probability: maybeText,
      probabilityScore: maybeNumber,
      severity: maybeText,
      severityScore: maybeNumber,
      blocked: maybeFlag,
    }),
  )
  .nullish()

const tokenDetails = z.array(z.object({ modality: text, tokenCount: z.number() }).loose()).nullish()

export const chunk = z.object({
  error: z
    .object({ code: z.number().nullable(), message: text, status: text, details: z.array(z.unknown()).nullish() })
    .nullish(),
  responseId: maybeText,
  candidates: z
    .array(
      z.object({
        content: z.object({ parts: z.array(part).nullish() }).nullish(),
        finishReason: maybeText,
        finishMessage: maybeText,
        continuationToken: maybeText,
        safetyRatings,
        groundingMetadata: grounding.nullish(),
        urlContextMetadata: z
          .object({
            urlMetadata: z.array(z.object({ retrievedUrl: text, urlRetrievalStatus: text })).nullish(),
          })
          .nullish(),
      }),
    )
    .nullish(),
  usageMetadata: z
    .object({
      cachedContentTokenCount: maybeNumber,
      thoughtsTokenCount: maybeNumber,
      promptTokenCount: maybeNumber,
      candidatesTokenCount: maybeNumber,
      toolUsePromptTokenCount: maybeNumber,
      totalTokenCount: maybeNumber,
      trafficType: maybeText,
      serviceTier: maybeText,
      promptTokensDetails: tokenDetails,
      cacheTokensDetails: tokenDetails,
      candidatesTokensDetails: tokenDetails,
      toolUsePromptTokensDetails: tokenDetails,
    })
    .loose()
    .nullish(),
  promptFeedback: z.object({ blockReason: maybeText, safetyRatings }).nullish(),
})

export type Chunk = z.infer<typeof chunk>
export type Candidate = NonNullable<Chunk['candidates']>[number]
export type Part = NonNullable<NonNullable<Candidate['content']>['parts']>[number]
export type FunctionCall = Extract<Part, { functionCall: unknown }>['functionCall']
export type Grounding = NonNullable<Candidate['groundingMetadata']>
export type Usage = NonNullable<Chunk['usageMetadata']>

export function checkChunk(value: unknown): Checked<Chunk> {
  return chunk.safeParse(value)
}
