/** Messages between page, remote page, service worker and worker that are not calls of `rpc.ts`. */
import type { CodeboxSource, Isolation, RuntimeFile, SessionRoot } from './api.js';

/** First message of a page to the remote page, with two ports: control of the remote page, then the worker. */
export interface Hello {
	type: 'wp-codebox-browser-hello';
	/** Random id, also in the fragment of the remote page's URL. */
	channel: string;
}

/** A request that the service worker hands to the remote page, with a port for the answer. */
export interface ForwardedRequest {
	type: 'wp-codebox-browser-request';
	scope: string;
	url: string;
	method: string;
	headers: Record< string, string >;
	body: ArrayBuffer | null;
	/** Whether the answer becomes a document. */
	navigation: boolean;
	/** Whether the frame that shows this document is inside of a document of the sandbox. */
	framed?: boolean;
}

/** Answers on the port of a forwarded request. The first one is always `received`. */
export type ForwardedAnswer =
	| { type: 'received' }
	| { type: 'response'; status: number; headers: Array< [ string, string ] >; body: Uint8Array | null };

/** What the page hands to the worker for the boot. All archives are checked before they get here. */
export interface BootInput {
	siteUrl: string;
	isolation: Isolation;
	build: 'jspi' | 'asyncify';
	wasm: Uint8Array;
	core: Uint8Array;
	sqlite: Uint8Array;
	/** Database that an earlier boot exported for the same core, if the browser kept it. */
	database: Uint8Array | null;
	roots: Array< { root: SessionRoot; archive: Uint8Array; overlay: Uint8Array | null } >;
	statics: CodeboxSource[ 'statics' ];
	wpCli: Uint8Array | null;
	constants: Record< string, string | number | boolean >;
}

/** What the worker reports after its boot. */
export interface BootOutput {
	php: string;
	wordpress: string;
	/** The database right after the installer, before any code of the visitor ran; null when it came from the page. */
	database: Uint8Array | null;
}

/**
 * Name of the file that has the WebAssembly of a build, packed as a zlib stream. Many web servers send a file named `.gz`,
 * or one that begins like gzip, with `Content-Encoding: gzip`; browsers then unpack it, and the hash no longer matches.
 */
export function wasmName( build: 'jspi' | 'asyncify' ): string {
	return `php-${ build }.bin`;
}

/** Name of the archive of the SQLite integration. */
export const sqliteName = 'sqlite-database-integration.zip';

/** Finds a big file by name. */
export function runtimeFile( files: RuntimeFile[], name: string ): RuntimeFile | undefined {
	return files.find( ( file ) => file.name === name );
}

/** Scope names are one path segment without special characters. */
export function validScope( scope: string ): boolean {
	return /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test( scope );
}
