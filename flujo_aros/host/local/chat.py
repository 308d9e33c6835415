"""The model object for a local server: pydantic-ai's own chat model, with an accurate profile and clear errors."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelRequestRejectedError,
    UserError,
)
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from pydantic_ai.settings import ModelSettings

from flujo_aros.host.local.engine import LocalServer, ServerFacts

READ_TIMEOUT = 3600.0  # a large model on one core may be slow; limit the time with the timeout of the step


def profile_of(facts: ServerFacts) -> OpenAIModelProfile:
    """Return the server's capabilities: grammars always, and tools only if the model's chat template supports them."""
    return OpenAIModelProfile(
        supports_tools=facts.tools,
        supports_json_schema_output=True,
        supports_json_object_output=True,
        default_structured_output_mode="native",
        # The schema goes to the grammar as it is: OpenAI's transformer would drop bounds and rewrite references.
        json_schema_transformer=None,
        supports_image_input=False,
        supports_document_input=False,
        supports_audio_file_input=False,
        supports_video_input=False,
        openai_supports_strict_tool_definition=False,
        openai_chat_supports_document_input=False,
        openai_chat_supports_multiple_system_messages=False,
        # Control tokens in a user's text would open a new turn.
        may_tokenize_special_tokens_in_content=True,
        context_window=facts.context,
        supported_native_tools=frozenset(),
    )


class LocalChatModel(OpenAIChatModel):
    """A chat model on a llama.cpp server on this machine.

    Errors are pydantic-ai's own classes with one plain sentence: a prompt longer than the context is a
    `ModelContextWindowExceededError`, a schema that llama.cpp cannot turn into a grammar a `ModelRequestRejectedError`,
    and a server that exited a `ModelConnectionError`.
    """

    def __init__(self, server: LocalServer, facts: ServerFacts) -> None:
        self._server = server
        self._context = facts.context
        client = AsyncOpenAI(
            base_url=f"{facts.url}/v1",
            api_key=server.key,
            max_retries=0,  # retrying does not help on loopback
            # trust_env=False: local traffic must not go through a proxy from the environment.
            http_client=DefaultAsyncHttpxClient(trust_env=False, timeout=READ_TIMEOUT),
            timeout=READ_TIMEOUT,
        )
        # Not named "openai": a file called gpt-4o.gguf would get that model's price.
        provider = OpenAICompatibleProvider("llama.cpp", openai_client=client, profile=lambda _: profile_of(facts))
        super().__init__(server.name, provider=provider)

    async def close(self) -> None:
        """Close the connections to the server."""
        await self.client.close()

    def prepare_request(
        self, model_settings: ModelSettings | None, model_request_parameters: ModelRequestParameters
    ) -> tuple[ModelSettings | None, ModelRequestParameters]:
        """Prepare a request as the base class does, but raise an error for tools that the model would never see."""
        if model_request_parameters.function_tools and not self.profile.get("supports_tools", True):
            raise UserError(
                f"The chat template of the local model {self.model_name} has no slot for tools: "
                "remove the tools from the agent, or use a model whose template has one."
            )
        return super().prepare_request(model_settings, model_request_parameters)

    async def request(self, *asked: Any, **options: Any) -> ModelResponse:
        """Make one call as the base class does, with clear errors."""
        try:
            return await super().request(*asked, **options)
        except (ModelHTTPError, ModelConnectionError) as error:
            raise await self._explain_error(error) from error

    @asynccontextmanager
    async def request_stream(self, *asked: Any, **options: Any) -> AsyncGenerator[StreamedResponse]:
        """Make one streamed call as the base class does, with clear errors."""
        try:
            async with super().request_stream(*asked, **options) as stream:
                yield stream
        except (ModelHTTPError, ModelConnectionError) as error:
            raise await self._explain_error(error) from error

    async def _explain_error(self, error: ModelHTTPError | ModelConnectionError) -> ModelAPIError:
        if isinstance(error, ModelHTTPError):
            return self._rejection(error)
        if not await self._server.wait_for_exit(within=0.5):  # the connection closes shortly before the process exits
            return error
        sentence = f"The server of the local model {self.model_name} ended during a request: "
        return ModelConnectionError(self.model_name, sentence + self._server.describe_exit() + ".", phase=error.phase)

    def _rejection(self, error: ModelHTTPError) -> ModelHTTPError:
        answer: object = error.body
        body = cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}
        why = str(body.get("message", ""))
        name = f"local model {self.model_name}"
        category: type[ModelRequestRejectedError]
        if body.get("type") == "exceed_context_size_error":
            category = ModelContextWindowExceededError
            plain = (
                f"The prompt has {body.get('n_prompt_tokens')} tokens and the {name} was started "
                f"with a context of {self._context}: shorten the input, or set AROS_LOCAL_CONTEXT to a larger number."
            )
        elif "JSON schema" in why or "grammar" in why:
            category, cause = ModelRequestRejectedError, why.partition("JSON schema error at ")[2] or why
            cure = "change the schema there, or use `output_mode: prompted`"
            plain = f"llama.cpp cannot convert the JSON schema to a grammar ({cause}): {cure}."
        elif "input is not supported" in why:
            category = ModelRequestRejectedError
            plain = (
                f"The {name} accepts only text ({why.partition(' - ')[0]}): use another model for "
                "this step, or send it only text."
            )
        else:
            return error
        rejection = ModelHTTPError.for_category(
            category,
            status_code=400,  # llama.cpp answers some invalid requests with status 500, but a retry would not help
            model_name=self.model_name,
            body={**body, "message": plain},
            headers=error.headers,
        )
        rejection.message = plain
        return rejection
