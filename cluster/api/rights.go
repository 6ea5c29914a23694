package api

import (
	"parley/cluster/api/parleyv1"
	"parley/cluster/cert"
)

// rights are the rights that a client's certificate must contain for each method. The .proto files repeat them.
var rights = map[string]cert.Rights{
	parleyv1.AgreeServiceAgreeProcedure:     cert.Write,
	parleyv1.AgreeServiceProposeProcedure:   cert.Write,
	parleyv1.AgreeServiceConsensusProcedure: cert.Write,
	parleyv1.AgreeServiceDecisionsProcedure: cert.Read,

	parleyv1.GroupServiceBroadcastProcedure: cert.Write,
	parleyv1.GroupServiceSubscribeProcedure: cert.Read,
	parleyv1.GroupServiceFetchProcedure:     cert.Read,

	parleyv1.TableServiceOpenProcedure:    cert.Write,
	parleyv1.TableServiceDoProcedure:      cert.Write,
	parleyv1.TableServiceQueryProcedure:   cert.Read, // and cert.Write if the command changes something
	parleyv1.TableServiceInspectProcedure: cert.Read,
	parleyv1.TableServiceGetProcedure:     cert.Read,
	parleyv1.TableServicePutProcedure:     cert.Write,
	parleyv1.TableServiceSwapProcedure:    cert.Write,
	parleyv1.TableServiceAddProcedure:     cert.Write,
	parleyv1.TableServiceDeleteProcedure:  cert.Write,

	parleyv1.ClockServiceNowProcedure: cert.Read,

	parleyv1.CommitServiceCommitProcedure:  cert.Write,
	parleyv1.CommitServiceOutcomeProcedure: cert.Read,

	parleyv1.AdminServiceStatusProcedure:  cert.Read,
	parleyv1.AdminServiceHealthProcedure:  cert.Read,
	parleyv1.AdminServiceMeasureProcedure: cert.Read,
	parleyv1.AdminServiceLeaveProcedure:   cert.Admin,
	parleyv1.AdminServiceDrainProcedure:   cert.Admin,
	parleyv1.AdminServiceExpelProcedure:   cert.Admin,
	parleyv1.AdminServiceForgetProcedure:  cert.Admin,
	parleyv1.AdminServiceRecordProcedure:  cert.Admin,
}

// onlyReads reports whether a method never changes anything. For Query that depends on the command.
func onlyReads(procedure string) bool {
	return rights[procedure] == cert.Read && procedure != parleyv1.TableServiceQueryProcedure
}
