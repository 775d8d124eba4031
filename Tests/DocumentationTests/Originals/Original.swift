internal import Testing

/// A library that Storehouse succeeds, with the features that its README, and the examples the README points to, name.
///
/// The names are the originals' own, so that a reader finds them in the article; each article's table must have exactly these.
struct Original: Sendable, CustomTestStringConvertible {
    let name: String
    /// The article with the table, as a path from the package's root.
    let article: String
    /// Every public type, function and setting.
    let features: Set<String>

    var testDescription: String { name }

    static let all = [storeFlowable, remotli, textFetcher, oneWaySynchronizer]

    /// https://github.com/KazaKago/StoreFlowable.swift and StoreFlowable.kt: READMEs of versions 1 to 5.
    private static let storeFlowable = Original(
        name: "StoreFlowable", article: "Sources/StoreCore/Core/StoreCore.docc/ComingFromStoreFlowable.md",
        features: [
            // Get started
            "Cacher", "shared", "UnitHash", "Unit", "Fetcher", "fetch(param:)", "PARAM", "DATA", "StoreFlowable", "AnyStoreFlowable",
            "AnyStoreFlowable.from(cacher:fetcher:param:)", "StoreFlowable.from", "publish()", "LoadingStateSequence", "FlowLoadingState",
            "LoadingState", "doAction(onLoading:onCompleted:onError:)",
            // Other usage
            "requireData(from:)", "getData(from:)", "GettingFrom", "publish(forceRefresh:)", "refresh()", "validate()",
            "update(newData:)", "clear()",
            // Operators
            "mapContent(transform)", "combineState(state, transform)", "zip",
            // Manage cache
            "expireSeconds", "saveData(data:param:)", "loadData(param:)", "saveDataCachedAt(epochSeconds:param:)",
            "loadDataCachedAt(param:)", "needRefresh(cachedData:param:)",
            // Pagination
            "PaginationCacher", "PaginationFetcher", "fetchNext(nextKey:param:)", "PaginationFetcher.Result(data:nextKey:)",
            "PaginationFetcher.Result(data:nextRequestKey:)", "AdditionalLoadingState", "doAction(onFixed:onLoading:onError:)",
            "PaginationStoreFlowable", "requestNextData(continueWhenError:)", "saveNextData(cachedData:newData:)",
            "saveNextRequestKey", "loadNextRequestKey", "update(newData:nextKey:)",
            // Two-way pagination
            "TwoWayPaginationCacher", "TwoWayPaginationFetcher", "TwoWayPaginationFetcher.Result", "fetchPrev(prevKey:param:)",
            "TwoWayPaginationStoreFlowable", "requestPrevData(continueWhenError:)", "savePrevData(cachedData:newData:)",
            "savePrevRequestKey", "loadPrevRequestKey", "update(newData:nextKey:prevKey:)",
            // Versions up to 3
            "FlowableDataStateManager", "StoreFlowableFactory", "PaginationStoreFlowableFactory", "create()", "loadDataFromCache(param:)",
            "saveDataToCache(newData:param:)", "saveNextDataToCache(cachedData:newData:param:)", "fetchDataFromOrigin(param:)",
            "fetchNextDataFromOrigin(nextKey:param:)", "Fetched(data:nextKey:)", "LoadingStatePublisher",
            // Examples
            "GithubMetaFetcher", "GithubMetaCacher", "GithubMetaFlowableFactory", "GithubUserFetcher", "GithubUserCacher",
            "GithubUserFlowableFactory", "GithubOrgsFetcher", "GithubOrgsCacher", "GithubOrgsFlowableFactory", "GithubReposFetcher",
            "GithubReposCacher", "GithubReposFlowableFactory", "GithubTwoWayReposFetcher", "GithubTwoWayReposCacher",
        ])

    /// https://github.com/appteur/remotli: README, and the plugins and error types of its sources.
    private static let remotli = Original(
        name: "Remotli", article: "Sources/RemoteRouting/Routing/RemoteRouting.docc/ComingFromRemotli.md",
        features: [
            // The simplest use case
            "Remotli(host:)", "send(_:port:method:mimeType:headers:parameters:usingAuth:completion:)", "usingAuth", "Codable",
            // Routes
            "Routable", "uri", "port", "method", "HTTPMethod", "mimeType", "MimeType", "headers", "parameters", "requiresAuth", "timeout",
            "cachePolicy", "route()", "Route(uri:port:method:mimeType:headers:parameters:requiresAuth:)", "Route",
            "send(requestFor:completion:)",
            // Custom implementations
            "Remotely", "Remotli", "setup()", "RequestPlugin", "addRequestPlugin(_:)", "ResponsePlugin", "addResponsePlugin(_:)",
            "BasicAuthPlugin(username:password:)", "JwtTokenPlugin", "RequestHeaderPlugin", "GetParametersPlugin", "PostJsonPlugin",
            "PostUrlEncodedPlugin", "FormDataPlugin", "JSONResponseParserPlugin", "RequestLoggerPlugin", "ResponseLoggerPlugin",
            "ResponseError", "NetworkError", "SerializationError", "AggregateAPIError",
            // Multiple remote services
            "Configuration(scheme:host:)", "HostScheme", "Remotli(configuration:)", "Remotli(configuration:session:useReachability:)",
            "URLSessionConfiguration", "allowsCellularAccess", "httpCookieAcceptPolicy", "useReachability", "NetworkReachability",
            "reachableViaCellular", "reachableViaWifi",
        ])

    /// https://github.com/MrEdigital/TextFetcher: README.
    private static let textFetcher = Original(
        name: "TextFetcher", article: "Sources/TextStore/TextStore.docc/ComingFromTextFetcher.md",
        features: [
            // Initialization, configuration
            "TextFetcher.default", "TextFetcher(withSessionID:)", "setResourceBundle(to:)", "setResourceTimeout(to:)",
            // Versioning
            "VersionSource(bundleFile:remoteFile:)", "BundleFile(fileName:fileExtension:)", "RemoteFile(urlString:)",
            "setVersionSource(to:withCompletion:)", "Version", "stringValue",
            // Registration, retrieval
            "TextSource(identifier:bundleFile:remoteFile:)", "registerTextSource(_:)", "registerTextSource(fromProvider:)",
            "text(for:completion:)", "text(for:awaitRemoteFetchIfNeeded:completion:)", "TextRequestCompletion", "clearCaches()",
            // Notifications, conveniences
            "TextFetcherNotificationReceiver", "versionIncreased(to:for:)", "addNotificationReceiver(_:)",
            "removeNotificationReceiver(_:)", "setNeedsToAcceptEULA", "TextSourceProvider", "textSource",
        ])

    /// https://github.com/ladeiko/OneWaySynchronizer: README, and the protocols of its source.
    private static let oneWaySynchronizer = Original(
        name: "OneWaySynchronizer", article: "Sources/SyncEngine/SyncEngine.docc/ComingFromOneWaySynchronizer.md",
        features: [
            // Flow
            "OneWaySynchronizer(processor:)", "OneWaySynchronizerProcessor", "OneWaySynchronizerDidChangeSyncStatusNotification",
            "owsSyncBegin(_:)", "owsFetchSourceList(_:)", "owsGetLocalKeys(_:)", "owsRemoveLocalItems(for:completion:)",
            "owsShouldUpdateItem(forKey:with:completion:)", "owsPrepareDownload(of:completion:)",
            "owsDownloadItemPreview(forDescription:completion:)", "owsDownloadItem(forDescription:completion:)", "owsSyncEnd(_:)",
            "OneWaySynchronizerItemDescription", "owsPrimaryKey", "owsDownloadOrder",
            // Methods
            "sync(completion:)", "OwsSyncCompletion", "cancel()", "isSyncing", "OwsError",
            // Options
            "concurrency", "downloadPreview", "downloadContent", "stopOnError",
        ])
}
