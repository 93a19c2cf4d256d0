<?php
/**
 * Requests that a connector of this site sends for a sandbox in a browser.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Connector;

use Throwable;
use WP_Error;
use WPCodebox\AuditTrail;
use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Model\Connector;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * This class resolves the connector, passes its credentials to the site plugin that handles connector
 * requests, and redacts them from that plugin's response. After the request was parsed, every failure becomes
 * a response with the status `failed-closed`.
 */
final class ConnectorRequests {

	public const EVENT = 'connector-request';

	/** Size limit of `payload`, `session` and `context` together, in bytes of JSON. */
	private const MOST_BYTES = 1048576;

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param ExtensionGate   $gate    Check that the PHP extension is loaded and its version fits.
	 * @param TrustedCallers  $callers Authorizes the caller.
	 * @param ConnectorSource $source  Resolves connectors.
	 * @param AuditTrail      $audit   Audit log that records each decision.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly TrustedCallers $callers,
		private readonly ConnectorSource $source,
		private readonly AuditTrail $audit
	) {}

	/**
	 * Carries out one connector request and records it in the audit log.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed> `wp-codebox/browser-connector-response/v1`.
	 * @throws Failure `wp_codebox_browser_connector_request_invalid`, or when the audit log cannot be written.
	 */
	public function request( array $input ): array {
		$this->gate->check();
		$asked     = $this->asked( $input );
		$decision  = $this->callers->admitted( Scope::RequestConnector, $input['authorization'] ?? null, $input )->to_array();
		$connector = null;
		try {
			$connector = $this->source->resolve( $asked['connector'], $asked + [ 'scope' => Scope::RequestConnector->value ], $input );
			$asked     = $this->source->bound( $connector, $asked );
			$this->source->usable( $connector );
			$request = $this->handed( $asked, $input, $connector, $decision );
			$this->audit->write( self::EVENT, [ 'status' => 'started' ] + $this->record( $asked, $connector, $decision ) );
			$response = $this->handle( $request, $input, array_values( $connector->values() ) );
		} catch ( Failure $failure ) {
			if ( ErrorCode::AuditFailed->value === $failure->error_code ) {
				throw $failure;
			}
			$this->audit->write(
				self::EVENT,
				[
					'status' => 'failure',
					'error'  => $failure->recorded(),
				] + $this->record( $asked, $connector, $decision )
			);
			return $this->envelope( $asked, $connector, $decision, [ 'error' => array_diff_key( $failure->to_array(), [ 'data' => 1 ] ) ] );
		}
		$this->audit->write( self::EVENT, [ 'status' => 'success' ] + $this->record( $asked, $connector, $decision ) );
		return $this->envelope( $asked, $connector, $decision, [ 'response' => $response ] );
	}

	/**
	 * Returns connector, provider, model and operation of the request, after checking the input.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array{connector: string, provider: string, model: string, operation: string}
	 */
	private function asked( array $input ): array {
		$asked = [];
		foreach ( [ 'connector', 'provider', 'model', 'operation' ] as $field ) {
			$asked[ $field ] = trim( (string) ( $input[ $field ] ?? '' ) );
		}
		foreach ( [ 'connector', 'operation' ] as $field ) {
			if ( '' === $asked[ $field ] ) {
				/* translators: %s: name of a field. */
				throw Failure::because( ErrorCode::BrowserConnectorRequestInvalid, Sentence::of( __( 'A connector request needs "%s"; name a connector of this site and what it is to do.', 'codebox' ), $field ) );
			}
		}
		$free = array_intersect_key( $input, array_flip( [ 'payload', 'session', 'context' ] ) );
		Redaction::plain( $free, ErrorCode::BrowserConnectorRequestInvalid, __( 'payload, session and context', 'codebox' ), self::MOST_BYTES );
		return $asked;
	}

	/**
	 * Builds the request for the handler. Only here do secret values leave their SensitiveParameterValue
	 * wrapper.
	 *
	 * @param array<string, string> $asked     Requested operation, connector, provider and model.
	 * @param array<string, mixed>  $input     Ability input.
	 * @param Connector             $connector WordPress connector.
	 * @param array<string, mixed>  $decision  Authorization decision about the caller.
	 * @return array<string, mixed> `wp-codebox/browser-connector-request/v1`.
	 */
	private function handed( array $asked, array $input, Connector $connector, array $decision ): array {
		return [ 'schema' => 'wp-codebox/browser-connector-request/v1' ] + $asked + [
			'payload'     => (array) ( $input['payload'] ?? [] ),
			'session'     => (array) ( $input['session'] ?? [] ),
			'context'     => (array) ( $input['context'] ?? [] ),
			'credentials' => $connector->values(),
			'audit'       => $this->about( $asked, $connector, $decision ),
		];
	}

	/**
	 * Passes the request to the host plugin that handles connector requests.
	 *
	 * @param array<string, mixed> $request `wp-codebox/browser-connector-request/v1`.
	 * @param array<string, mixed> $input   Ability input.
	 * @param list<string>         $values  Secret values to redact from the response.
	 * @return array<mixed> Redacted response.
	 */
	private function handle( #[\SensitiveParameter] array $request, array $input, #[\SensitiveParameter] array $values ): array {
		try {
			/**
			 * Carries out a connector request. The request holds the credentials of the connector by
			 * environment name: send them to the connector's own provider only. Do not include them in the
			 * response; any that the response contains are redacted.
			 *
			 * @param array<string, mixed>|WP_Error|null $response Response of an earlier handler: return it
			 *   unchanged when it is not null.
			 * @param array{schema: string, connector: string, provider: string, model: string, operation:
			 *   string, payload: array<string, mixed>, session: array<string, mixed>, context: array<string,
			 *   mixed>, credentials: array<string, string>, audit: array<string, mixed>} $request Request to
			 *   carry out.
			 * @param array<string, mixed> $input Input of the ability, unchanged.
			 */
			$answer = apply_filters( 'wp_codebox_browser_connector_request', null, $request, $input );
		} catch ( Throwable $thrown ) {
			throw PluginResponse::thrown( $thrown, ErrorCode::BrowserConnectorHandlerFailed, __( 'The plugin that handles connector requests failed; the PHP error log says where.', 'codebox' ) );
		}
		if ( null === $answer ) {
			throw Failure::because(
				ErrorCode::BrowserConnectorHandlerMissing,
				__( 'No plugin of this site handles connector requests.', 'codebox' ),
				[ __( 'Install a plugin that answers the filter wp_codebox_browser_connector_request; docs/connector-requests.md describes the filter.', 'codebox' ) ]
			);
		}
		return PluginResponse::response( $answer, $values, ErrorCode::BrowserConnectorHandlerFailed, ErrorCode::BrowserConnectorResponseInvalid );
	}

	/**
	 * Builds the response to the caller from the result.
	 *
	 * @param array<string, string> $asked     Requested operation, connector, provider and model.
	 * @param Connector|null        $connector Connector, or null when the request failed before one was
	 *   resolved.
	 * @param array<string, mixed>  $decision  Authorization decision about the caller.
	 * @param array<string, mixed>  $outcome   Result with `response` or `error`.
	 * @return array<string, mixed>
	 */
	private function envelope( array $asked, ?Connector $connector, array $decision, array $outcome ): array {
		$good = isset( $outcome['response'] );
		return [
			'success' => $good,
			'schema'  => 'wp-codebox/browser-connector-response/v1',
			'status'  => $good ? 'completed' : 'failed-closed',
		] + $asked + $outcome + [
			'credentials' => ConnectorSource::credentials( $connector ),
			'audit'       => $this->about( $asked, $connector, $decision ),
		];
	}

	/**
	 * Returns the data about a request that is safe in responses and logs.
	 *
	 * @param array<string, string> $asked     Requested operation, connector, provider and model.
	 * @param Connector|null        $connector Connector, or null when the request failed before one was
	 *   resolved.
	 * @param array<string, mixed>  $decision  Authorization decision about the caller.
	 * @return array<string, mixed> `wp-codebox/browser-connector-audit/v1`.
	 */
	private function about( array $asked, ?Connector $connector, array $decision ): array {
		return [
			'schema'           => 'wp-codebox/browser-connector-audit/v1',
			'operation'        => $asked['operation'],
			'authorization'    => $decision,
			'secrets_redacted' => true,
			'generated_by'     => 'wp-codebox/browser-connector-request',
		] + ConnectorSource::summary( $connector );
	}

	/**
	 * Returns the fields about a request that the audit log stores.
	 *
	 * @param array<string, string> $asked     Requested operation, connector, provider and model.
	 * @param Connector|null        $connector Connector, or null when the request failed before one was
	 *   resolved.
	 * @param array<string, mixed>  $decision  Authorization decision about the caller.
	 * @return array<string, mixed>
	 */
	private function record( array $asked, ?Connector $connector, array $decision ): array {
		return $asked + [ 'authorization' => $decision ] + ConnectorSource::summary( $connector );
	}
}
