/**
 * Public interface of the client module: what a page passes to `startPlaygroundWeb()` and gets back.
 *
 * The shape follows the public client of WordPress Playground as far as browser sessions use it; what only
 * this engine needs is below `blueprint.codebox`. This module has types and one error class, no behaviour.
 */

/** Stable codes of everything that can fail here. */
export type EngineCode =
	| 'wp_codebox_browser_no_service_worker'
	| 'wp_codebox_browser_no_decompression'
	| 'wp_codebox_browser_storage_denied'
	| 'wp_codebox_browser_storage_full'
	| 'wp_codebox_browser_asset_missing'
	| 'wp_codebox_browser_asset_hash_mismatch'
	| 'wp_codebox_browser_boot_failed'
	| 'wp_codebox_browser_boot_timeout'
	| 'wp_codebox_browser_seed_too_large'
	| 'wp_codebox_browser_remote_refused'
	| 'wp_codebox_browser_step_unsupported'
	| 'wp_codebox_browser_step_failed'
	| 'wp_codebox_browser_command_unsupported'
	| 'wp_codebox_browser_file_failed'
	| 'wp_codebox_browser_request_failed'
	| 'wp_codebox_browser_closed';

/** An error as data: what crosses windows and workers, and what a page shows. */
export interface EngineFailure {
	code: EngineCode;
	/** A sentence in English. */
	message: string;
	/** What to do about it. */
	hint?: string;
}

/** Every failure of this module. */
export class EngineError extends Error implements EngineFailure {
	readonly code: EngineCode;
	readonly hint?: string;

	constructor( code: EngineCode, message: string, hint?: string ) {
		super( message );
		this.name = 'EngineError';
		this.code = code;
		if ( undefined !== hint ) {
			this.hint = hint;
		}
	}
}

/** A file of the server with the digest that its contents must have. */
export interface HashedFile {
	url: string;
	/** Hexadecimal. */
	sha256: string;
	bytes: number;
}

/** A big file of `runtime.json`. */
export interface RuntimeFile {
	name: string;
	sha256: string;
	bytes: number;
}

/** `opaque`: documents on this origin, under a CSP sandbox. `separate-host`: on a configured other host, without CSP sandbox. */
export type Isolation = 'opaque' | 'separate-host';

/** A directory or file of the visitor's code. Changes are computed against the archive; files of the overlay count as changes. */
export interface SessionRoot {
	/** Name below wp-content, such as `plugins/foo`; bundles use it. */
	target: string;
	/** Path in the sandbox, such as `/wordpress/wp-content/plugins/foo`. */
	path: string;
	/** Zip whose entries are relative to the directory; for a single file, one entry with its file name. */
	archive: HashedFile;
	/** Contents of a bundle, unpacked over the archive. `deleted` are targets such as `plugins/foo/x.php`. */
	overlay?: HashedFile & { deleted?: string[] };
}

/** What this engine needs beside the blueprint. */
export interface CodeboxSource {
	core: HashedFile & { key: string };
	runtime: { base_url: string; files: RuntimeFile[] };
	isolation: Isolation;
	/** URLs of unchanged core and theme files on the parent site; each ends with a slash. */
	statics: { includes: string; admin: string; themes: string; root?: string };
	session_id: string;
	roots?: SessionRoot[];
	/** WP-CLI as a phar, for `wp` in the terminal. Without it a subset of commands works. */
	wp_cli?: HashedFile;
	/** Build of PHP. If unset, the engine takes `jspi` where the browser supports it, else `asyncify`. */
	php_build?: 'jspi' | 'asyncify';
}

/** One step of a blueprint, as published: `step` and the fields of that step. */
export interface BlueprintStep {
	step: string;
	[ field: string ]: unknown;
}

/** The supported part of a blueprint. */
export interface Blueprint {
	$schema?: string;
	meta?: Record< string, unknown >;
	landingPage?: string;
	login?: boolean | { username?: string; password?: string };
	preferredVersions?: { php?: string; wp?: string };
	phpExtensionBundles?: string[];
	features?: Record< string, unknown >;
	constants?: Record< string, string | number | boolean >;
	siteOptions?: Record< string, unknown >;
	plugins?: Array< string | Record< string, unknown > >;
	steps?: Array< BlueprintStep | string | false | null | undefined >;
	codebox?: CodeboxSource;
}

/** One report of progress. `fraction` is from 0 to 1 and never falls. */
export interface Progress {
	stage: 'download' | 'runtime' | 'files' | 'install' | 'roots' | 'blueprint' | 'open' | 'ready' | 'notice';
	fraction: number;
	/** For `notice`: what does not work, such as a denied cache. Work goes on. */
	notice?: EngineFailure;
}

/** Options of `startPlaygroundWeb()`. */
export interface StartOptions {
	iframe: HTMLIFrameElement;
	/** URL of remote.html. */
	remoteUrl: string;
	/** Name of the site below `<assets>/site/`: letters, digits, `-`, `_`. */
	scope?: string;
	blueprint?: Blueprint;
	/** Accepted and ignored: the engine sends no request to other hosts. */
	corsProxyUrl?: string;
	onProgress?: ( progress: Progress ) => void;
	onClientConnected?: ( client: PlaygroundClient ) => void;
	signal?: AbortSignal;
}

/** The answer to `run()`. */
export interface RunAnswer {
	text: string;
	bytes: Uint8Array;
	errors: string;
	exitCode: number;
	httpStatusCode: number;
	headers: Record< string, string[] >;
}

/** One request to the WordPress in the sandbox. */
export interface SiteRequest {
	/** A path, or an absolute URL of the site. */
	url: string;
	method?: string;
	headers?: Record< string, string >;
	body?: string | Uint8Array | Record< string, string >;
}

/** Options of `exec()`. */
export interface ExecOptions {
	/** Default: the directory of the first root; if this root is a single file, the directory that contains it. */
	cwd?: string;
	/** Every `ExecOutput` carries this id. Default: a new id. */
	executionId?: string;
	onOutput?: ( output: ExecOutput ) => void;
}

/** A piece of output, in order. */
export interface ExecOutput {
	executionId: string;
	stream: 'stdout' | 'stderr';
	data: string;
}

/** A file that differs from the baseline. */
export interface ChangedFile {
	/** Target name, such as `plugins/foo/a.php`. */
	path: string;
	status: 'added' | 'modified' | 'deleted';
	before?: Uint8Array;
	after?: Uint8Array;
}

/** Facts of a boot, for diagnostics. Nothing secret. */
export interface Diagnostics {
	php: string;
	build: 'jspi' | 'asyncify';
	wordpress: string;
	isolation: Isolation;
	/** `installer`: WordPress was installed now; `cache`: the database of an earlier session was used. */
	database: 'installer' | 'cache';
	/** Whether files could be kept in this browser. */
	cache: 'available' | 'denied' | 'full';
	crossOriginIsolated: boolean;
	/** Milliseconds since `startPlaygroundWeb()` by stage. */
	milliseconds: Record< string, number >;
	/** Messages of fatal errors of PHP and of failed steps of the boot; at most 50. */
	problems: string[];
}

/** A running WordPress. All paths are absolute paths of the sandbox. */
export interface PlaygroundClient {
	run( options: { code: string } | { scriptPath: string } ): Promise< RunAnswer >;
	request( request: SiteRequest ): Promise< RunAnswer >;

	readFileAsText( path: string ): Promise< string >;
	readFileAsBuffer( path: string ): Promise< Uint8Array >;
	writeFile( path: string, contents: string | Uint8Array ): Promise< void >;
	mkdir( path: string ): Promise< void >;
	mkdirTree( path: string ): Promise< void >;
	unlink( path: string ): Promise< void >;
	rmdir( path: string, options?: { recursive?: boolean } ): Promise< void >;
	mv( from: string, to: string ): Promise< void >;
	fileExists( path: string ): Promise< boolean >;
	isDir( path: string ): Promise< boolean >;
	listFiles( path: string, options?: { prependPath?: boolean } ): Promise< string[] >;

	/** Opens a path of the site, such as `/wp-admin/`, in the frame. */
	goTo( path: string ): Promise< void >;
	/** Path of the last document that the frame requested through the service worker. */
	getCurrentURL(): Promise< string >;
	pathToInternalUrl( path: string ): Promise< string >;
	internalUrlToPath( url: string ): Promise< string >;
	/** Passes messages of PHP's `post_message_to_js()` to `handler`. Returns a function that removes the handler. */
	onMessage( handler: ( data: string ) => void ): Promise< () => void >;
	onNavigation( handler: ( path: string ) => void ): Promise< () => void >;
	onDownloadProgress( handler: ( progress: Progress ) => void ): Promise< void >;
	isReady(): Promise< true >;
	readonly documentRoot: Promise< string >;
	readonly absoluteUrl: Promise< string >;

	runBlueprint( blueprint: Blueprint ): Promise< void >;
	applyBlueprint( blueprint: Blueprint ): Promise< void >;

	/** Runs one command; output arrives while it runs. Throws `wp_codebox_browser_command_unsupported` for other commands. */
	exec( command: string, args?: string[], options?: ExecOptions ): Promise< { executionId: string; exitCode: number } >;
	/** Files of the roots (or of one target) that differ from the baseline. */
	changedFiles( target?: string ): Promise< ChangedFile[] >;
	diagnostics(): Promise< Diagnostics >;
	/** Ends the worker, unregisters the service worker, empties the frame. */
	destroy(): Promise< void >;
}

/** The exported function of `client.js`. */
export type StartPlaygroundWeb = ( options: StartOptions ) => Promise< PlaygroundClient >;
